"""What adapters note and _core works off: tuples (code, start, end, …), and the bits in them."""

WAITED, EXHAUSTED, FORWARD, BACKWARD, OPTIMIZER, PROGRAM_STEP, FETCHED, SPAN, COUNT, ITERATOR, TAKEN_OVER, CALL, QUIET = (
    range(13))
# How sure an event makes us that its thread is the one that trains.
BY_WAIT, BY_FORWARD, BY_UPDATE = 1, 2, 3
# Bits of FORWARD: the module's own flag, gradients on, it has parameters, called by an optimizer's closure.
TRAINING, GRAD, PARAMETERS, IN_OPTIMIZER = 1, 2, 4, 8
BUSY, OFF = 1, 2           # of Core.busy
EVENTS_MAX = 4096
BATCH_EVENTS = 512
IDLE_NS = 200_000_000      # without steps events leave this often
EAGER_STEPS = 64           # so many steps leave one by one: a short run loses none when it is killed
