"""Knowledge distillation on CIFAR-100: ResNet-50 teacher, ResNet-18 student."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Subset
from torchvision import models, transforms
from torchvision.datasets import CIFAR100

MEAN, STD = (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)
CFG = {
    "teacher_ckpt": "teacher_r50_cifar100.pt",
    "student_ckpt": "student_r18.pt",
    "batch_size": 128,
    "epochs": 160,
    "lr": 0.1,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "milestones": [80, 120],
    "temperature": 4.0,
    "alpha": 0.9,
    "val_size": 5000,
}


def cifar_resnet(factory, classes=100):
    net = factory(weights=None, num_classes=classes)
    net.conv1 = nn.Conv2d(3, 64, 3, stride=1, padding=1, bias=False)
    net.maxpool = nn.Identity()
    return net


def make_loaders(cfg):
    norm = [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    aug = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), *norm])
    plain = transforms.Compose(norm)
    train = CIFAR100("data", train=True, transform=aug, download=True)
    train_plain = CIFAR100("data", train=True, transform=plain)
    test = CIFAR100("data", train=False, transform=plain, download=True)
    # same held-out images as for the teacher: the last of a fixed permutation
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(2024)).tolist()
    fit, held = order[:-cfg["val_size"]], order[-cfg["val_size"]:]
    kw = dict(num_workers=4, pin_memory=True)
    return (DataLoader(Subset(train, fit), cfg["batch_size"], shuffle=True, drop_last=True, **kw),
            DataLoader(Subset(train_plain, held), 500, **kw),
            DataLoader(test, 500, **kw))


def kd_loss(student_logits, teacher_logits, target, temperature, alpha):
    soft = F.kl_div(
        F.log_softmax(student_logits / temperature, dim=1),
        F.softmax(teacher_logits / temperature, dim=1),
        reduction="batchmean",
    ) * temperature ** 2
    hard = F.cross_entropy(student_logits, target)
    return alpha * soft + (1 - alpha) * hard


@torch.no_grad()
def accuracy(net, loader, device):
    net.eval()
    correct = count = 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        correct += (net(x).argmax(1) == y).sum().item()
        count += y.numel()
    return correct / count


def distill(cfg):
    torch.manual_seed(11)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_dl, val_dl, test_dl = make_loaders(cfg)

    teacher = cifar_resnet(models.resnet50)
    teacher.load_state_dict(torch.load(cfg["teacher_ckpt"], map_location="cpu"))
    teacher.to(device).eval().requires_grad_(False)
    print(f"teacher val accuracy {accuracy(teacher, val_dl, device):.4f}")

    student = cifar_resnet(models.resnet18).to(device)
    optimizer = torch.optim.SGD(student.parameters(), lr=cfg["lr"], momentum=cfg["momentum"],
                                weight_decay=cfg["weight_decay"], nesterov=True)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, cfg["milestones"], gamma=0.1)

    best = 0.0
    for epoch in range(cfg["epochs"]):
        student.train()
        total = 0.0
        for x, y in train_dl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.no_grad():
                t_logits = teacher(x)
            s_logits = student(x)
            loss = kd_loss(s_logits, t_logits, y, cfg["temperature"], cfg["alpha"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        acc = accuracy(student, val_dl, device)
        print(f"{epoch:3d} lr {scheduler.get_last_lr()[0]:.4f} loss {total / len(train_dl):.4f} val {acc:.4f}")
        if acc > best:
            best = acc
            torch.save({"epoch": epoch, "acc": acc, "state": student.state_dict()}, cfg["student_ckpt"])

    student.load_state_dict(torch.load(cfg["student_ckpt"], map_location=device)["state"])
    print(f"best val {best:.4f} test {accuracy(student, test_dl, device):.4f}")


if __name__ == "__main__":
    distill(CFG)
