"""Print what the seeds that were added have decided."""

from agelab.present.view.terminal import open_console, print_wrapped
from agelab.results.measure import ALL_STEPS, ALL_STEPS_TITLE
from agelab.runner.request.options import LOOKS
from agelab.runner.sequential import LEVEL, Outcome


def print_outcome(outcome: Outcome) -> None:
    """Print the question, the decision or why there is none, and how often that is wrong."""
    console, decision, question = open_console(), outcome.decision, outcome.question
    measure = ALL_STEPS_TITLE if question.measure == ALL_STEPS else str(question.measure)
    asked = (
        f"Which is {question.extreme}" if question.extreme else f"Do {' and '.join(question.sides)} differ"
    )
    console.print(f"\n{asked} by {measure}?", style="bold", markup=False)
    print_wrapped(console, f"{'decided' if decision.decided else 'not decided'}: {decision.said}")
    if outcome.ended:
        print_wrapped(console, outcome.ended)
    print_wrapped(
        console,
        f"looked at after {', '.join(map(str, LOOKS))} run seeds, each time at {float(100 * LEVEL):g} %, 5 % in all; "
        f"here after {outcome.seeds}",
    )
