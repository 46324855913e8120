"""Copies of a model among the objects of the process."""

import copy

from torch import nn

from holter.watching.collectors.duplicates import copies_of, counterparts


class Net(nn.Module):
    """A model of the script."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.layer = nn.Linear(3, width)
        self.dropout = nn.Dropout()


def test_copies_are_of_one_class_and_shape() -> None:
    model, wider = Net(), Net(5)
    twin = copy.deepcopy(model)
    found = copies_of(model)
    assert twin in found
    assert not any(each is model or each is wider for each in found)
    assert copies_of(model.layer) == []  # a layer of torch is no model


def test_modules_of_a_copy_stand_where_those_of_the_model_do() -> None:
    model = Net()
    twin = copy.deepcopy(model)
    assert counterparts(model, twin, [model.dropout]) == (twin.dropout,)
