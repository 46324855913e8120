# Inpainting by optimising the pixels themselves: data term + smoothness, plain gradient descent.
# All terms are means over the whole image, so the step must be of the order of the pixel count.
import torch

torch.manual_seed(0)
torch.set_num_threads(1)
H = 48
yy, xx = torch.meshgrid(torch.arange(H).float(), torch.arange(H).float(), indexing="ij")
clean = 0.5 + 0.25 * torch.sin(xx / 7) + 0.25 * torch.cos(yy / 9)
mask = (torch.rand(H, H) < 0.4).float()
noisy = clean + 0.02 * torch.randn(H, H)

pix = torch.full((H, H), 0.5, requires_grad=True)
opt = torch.optim.SGD([pix], lr=200.0, momentum=0.9)


def rough(z):
    return ((z[1:] - z[:-1]) ** 2).mean() + ((z[:, 1:] - z[:, :-1]) ** 2).mean()


for it in range(1, 1501):
    data = (mask * (pix - noisy) ** 2).mean()
    loss = data + 0.3 * rough(pix)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it == 1 or it % 250 == 0:
        with torch.no_grad():
            mse = (((pix - clean) ** 2) * (1 - mask)).sum() / (1 - mask).sum()
        print(f"iter {it:4d}  loss {loss.item():.6f}  PSNR of the holes {-10 * mse.log10().item():.2f} dB")
print(f"final PSNR of the holes {-10 * mse.log10().item():.2f} dB")
