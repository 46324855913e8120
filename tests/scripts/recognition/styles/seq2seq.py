"""Translation with teacher forcing: encoder and decoder with an optimizer each."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

torch.manual_seed(0)
random.seed(0)
SOS_token, MAX_LENGTH, hidden_size = 0, 6, 24


class EncoderRNN(nn.Module):
    def __init__(self, input_size):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)

    def forward(self, input):
        return self.gru(self.embedding(input))


class DecoderRNN(nn.Module):
    def __init__(self, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, encoder_outputs, encoder_hidden, target_tensor=None):
        decoder_input = torch.empty(encoder_outputs.size(0), 1, dtype=torch.long).fill_(SOS_token)
        decoder_hidden = encoder_hidden
        decoder_outputs = []
        for i in range(MAX_LENGTH):
            output, decoder_hidden = self.gru(F.relu(self.embedding(decoder_input)), decoder_hidden)
            decoder_outputs.append(self.out(output))
            decoder_input = target_tensor[:, i].unsqueeze(1)
        return F.log_softmax(torch.cat(decoder_outputs, dim=1), dim=-1), decoder_hidden, None


def get_dataloader(batch_size):
    source = torch.randint(2, 20, (400, MAX_LENGTH))
    data = TensorDataset(source, source.flip(1))
    return DataLoader(data, sampler=RandomSampler(data), batch_size=batch_size)


def train_epoch(dataloader, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    total_loss = 0
    for data in dataloader:
        input_tensor, target_tensor = data
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        encoder_outputs, encoder_hidden = encoder(input_tensor)
        decoder_outputs, _, _ = decoder(encoder_outputs, encoder_hidden, target_tensor)
        loss = criterion(decoder_outputs.view(-1, decoder_outputs.size(-1)), target_tensor.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        total_loss += loss.item()
    return total_loss / len(dataloader)


encoder, decoder = EncoderRNN(20), DecoderRNN(20)
optimizers = [optim.Adam(each.parameters(), lr=1e-3) for each in (encoder, decoder)]
for epoch in range(1, 5):
    print(train_epoch(get_dataloader(16), encoder, decoder, *optimizers, nn.NLLLoss()))
