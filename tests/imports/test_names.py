"""Which names stand for which signal."""

import pytest

from holter import HolterError
from holter.imports.names import parse_mapping, role_of, speaks_of_competing_losses
from holter.record.signals import (
    ACCURACY,
    GRAD_TOTAL_NORM,
    LOSS,
    LR,
    VAL_ACCURACY,
    VAL_LOSS,
    Signal,
)

KNOWN = {
    LOSS: "loss train/loss train_loss Loss/train training.loss trainLoss train_loss_step"
    " train_loss_epoch total_loss loss/total avg_loss",
    VAL_LOSS: "val_loss val/loss eval_loss eval/loss Loss/val valid.loss validation_loss"
    " test_loss valLoss val_loss_epoch dev/loss",
    ACCURACY: "accuracy acc train/acc train_accuracy top1_acc acc/top1",
    VAL_ACCURACY: "val_acc eval_accuracy val/accuracy Accuracy/test val_acc_top1",
    LR: "lr learning_rate train/learning_rate lr-Adam lr-AdamW/pg1 optimizer/lr lr/pg0 lr0",
    GRAD_TOTAL_NORM: "grad_norm train/grad_norm gradient_norm grad_2.0_norm_total gnorm"
    " global_grad_norm grad/norm",
}
OTHERS = (
    "kl_loss policy_loss d_loss loss_g val/perplexity epoch step grad_norm/layer1.weight"
    " top5_acc eval_runtime lr_loss train/entropy val_lr weight_norm loss_scale system/gpu.0.temp"
    " clip_fraction aux_loss"
)


@pytest.mark.parametrize("signal", KNOWN, ids=str)
def test_names_of_a_signal(signal: Signal) -> None:
    for name in KNOWN[signal].split():
        role = role_of(name)
        assert role is not None, name
        assert role.signal is signal, name


def test_names_of_no_signal() -> None:
    assert {name: role_of(name) for name in OTHERS.split()} == dict.fromkeys(OTHERS.split())


def test_a_plain_name_is_preferred() -> None:
    ranks = [
        role.rank for name in ("train_loss", "loss", "train_loss_epoch") if (role := role_of(name))
    ]
    assert ranks == sorted(ranks)
    validation, test = role_of("val_loss"), role_of("test_loss")
    assert validation is not None
    assert test is not None
    assert validation.rank < test.rank


def test_names_of_trainings_whose_losses_compete() -> None:
    for name in (
        "loss/policy",
        "d_loss",
        "train/loss_g",
        "rollout/ep_reward_mean",
        "GAN/generator",
    ):
        assert speaks_of_competing_losses(name), name
    for name in ("train/loss", "model_loss", "grad_norm", "decoder_loss", "val_loss"):
        assert not speaks_of_competing_losses(name), name


def test_mappings() -> None:
    assert parse_mapping(["loss=my/loss", "val.loss=other=1"]) == {
        "my/loss": LOSS,
        "other=1": VAL_LOSS,
    }
    for wrong, says in (
        ("loss", "SIGNAL=NAME"),
        ("loss=", "SIGNAL=NAME"),
        ("los=x", "did you mean 'loss'"),
        ("q=x", "there are loss"),
    ):
        with pytest.raises(HolterError, match=says):
            parse_mapping([wrong])
