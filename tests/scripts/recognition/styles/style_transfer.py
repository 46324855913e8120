"""Fast style transfer: a trained network, a frozen one for features, a loss of both."""

import torch
from torch import nn
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(42)


class TransformerNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, X):
        return self.conv2(torch.relu(self.conv1(X)))


class Vgg(nn.Module):
    def __init__(self, requires_grad=False):
        super().__init__()
        self.slice1, self.slice2 = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 3)
        for param in self.parameters():
            param.requires_grad = requires_grad

    def forward(self, X):
        h = torch.relu(self.slice1(X))
        return h, torch.relu(self.slice2(h))


def gram_matrix(y):
    b, ch, h, w = y.size()
    features = y.view(b, ch, w * h)
    return features.bmm(features.transpose(1, 2)) / (ch * h * w)


def train():
    train_loader = DataLoader(TensorDataset(torch.rand(160, 3, 8, 8)), batch_size=8)
    transformer = TransformerNet()
    optimizer = Adam(transformer.parameters(), 1e-3)
    mse_loss = torch.nn.MSELoss()
    vgg = Vgg(requires_grad=False)
    style = torch.rand(1, 3, 8, 8).repeat(8, 1, 1, 1)
    features_style = vgg(style)
    gram_style = [gram_matrix(y) for y in features_style]
    for e in range(3):
        transformer.train()
        agg_content_loss = 0.0
        count = 0
        for batch_id, (x,) in enumerate(train_loader):
            n_batch = len(x)
            count += n_batch
            optimizer.zero_grad()
            y = transformer(x)
            features_y = vgg(y)
            features_x = vgg(x)
            content_loss = 1e5 * mse_loss(features_y[1], features_x[1])
            style_loss = 0.0
            for ft_y, gm_s in zip(features_y, gram_style):
                gm_y = gram_matrix(ft_y)
                style_loss += mse_loss(gm_y, gm_s[:n_batch, :, :])
            style_loss *= 1e4
            total_loss = content_loss + style_loss
            total_loss.backward()
            optimizer.step()
            agg_content_loss += content_loss.item()
    transformer.eval().cpu()
    torch.save(transformer.state_dict(), "epoch_3.model")


train()
