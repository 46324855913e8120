"""Control experiments: what changes when one thing is changed on purpose."""

from holter.signals._signal import Per, Phase, Signal

MIXING_OWN = Signal(
    "mixing.own",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much the outputs of a sample change when its input is replaced by that of another sample:"
    " the largest change, in standard deviations of the outputs.",
)
MIXING_OTHERS = Signal(
    "mixing.others",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much the outputs of each other sample change then; one reading a sample, its number as"
    " the step.",
)
MIXING_MODULES = Signal(
    "mixing.modules",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The same of what a module inside the model gives out: the largest change in other samples,"
    " with the place of the module in the order of execution as the step. Read only where the"
    " outputs of other samples change.",
)
MIXING_ROUNDING = Signal(
    "mixing.rounding",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The change that may be rounding: of two equal calls, and of the data type.",
)
MIXING_SHUFFLED = Signal(
    "mixing.shuffled",
    Per.TRIAL,
    Phase.DATA,
    "",
    "1 if the training loader puts samples together in random order, else 0.",
)
CAUSALITY_CHANGE = Signal(
    "causality.change",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much the outputs at each position change when the inputs at later positions are replaced:"
    " the largest change, in standard deviations of the outputs, with the position as the step. A"
    " trial is named after the inputs that were replaced: all from one position on, or one alone.",
)
CAUSALITY_LATER = Signal(
    "causality.later",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "How much the outputs at the replaced positions change themselves: the largest change.",
)
CAUSALITY_ROUNDING = Signal(
    "causality.rounding",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The change that may be rounding: of two equal calls, and of the data type.",
)
CAUSALITY_MODULES = Signal(
    "causality.modules",
    Per.TRIAL,
    Phase.FORWARD,
    "spreads",
    "The same change in what a module inside the model gives out at earlier positions, with the"
    " place of the module in the order of execution as the step. Read only for the first module in"
    " which anything changes.",
)
