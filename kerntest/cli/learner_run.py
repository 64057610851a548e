"""What the commands share that fit a model: where report and model go, and the run itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kerntest.cli.console import progress_bar
from kerntest.cli.delivery import Delivery
from kerntest.cli.inputs import check_outputs, check_stdin, join_names, point_at
from kerntest.errors import KerntestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kerntest.report.record import Record
    from kerntest.report.summary import Summary

# Parameters of the report: -o is the model.
REPORT = ("output_format", "as_json", "report", "fail_on", "quiet", "verbose")


def report_delivery(options: dict[str, Any]) -> Delivery:
    """Take out of the options what says where the report goes; `report` is its file.

    Raises
    ------
    UsageError
        If they contradict each other.
    """
    return Delivery.asked_for(**{("output" if name == "report" else name): options.pop(name) for name in REPORT})


@dataclass(frozen=True, slots=True)
class LearnerRun:
    """A model to be fitted, with its report.

    Parameters
    ----------
    train : str
    options : dict
        Of the fit.
    delivery : Delivery
    """

    train: str
    options: dict[str, Any]
    delivery: Delivery

    @classmethod
    def asked_for(
        cls, sources: Mapping[str, str | None], options: dict[str, Any], example: str, record: type[Record]
    ) -> LearnerRun:
        """Return the run that the options ask for.

        Parameters
        ----------
        sources : mapping of str to str or None
            The names of what is read and the files, the training rows first.
        options : dict
            Those of the report are removed from it.
        example : str
            A command line that reads from stdin.
        record : type
            Of the result.

        Raises
        ------
        UsageError
            If the gate names what no such result has, or outputs contradict each other, or would write over each other or over what is read.
        """
        delivery = report_delivery(options)
        delivery.check_gates(record)
        given = {name: source for name, source in sources.items() if source is not None}
        check_stdin(given, example)
        outputs = {"-o": options["output"], "--plot": options["plot"], "--report": delivery.output}
        check_outputs(tuple(given.values()), outputs)
        return cls(next(iter(given.values())), options, delivery)

    def fitted(self, function: str) -> Any:
        """Fit the model by a function of kerntest, with a progress bar where somebody is looking."""
        import kerntest  # noqa: PLC0415 - numerics are loaded only to compute

        join_names(self.options, "columns", "exclude", "categorical")
        try:
            with progress_bar(quiet=self.delivery.messages.quiet, doing="fitting") as progress:
                return getattr(kerntest, function)(self.train, progress=progress, **self.options)
        except KerntestError as error:
            point_at(error, self.options["kernel"])
            raise

    def deliver(self, result: Any, notes: Sequence[str], summarise: Callable[[Any], Summary]) -> int:
        """Write the report, say on stderr what it does not, and return the exit code."""
        self.delivery.messages.explain(notes)
        self.delivery.deliver(result, summarise)
        self.delivery.messages.wrote(self.options["plot"], result.model)
        return self.delivery.code(result)
