"""`opsieve verify`: does the slim runtime compute the same as the full one?"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from opsieve.cli.output import WIDTH, format_option, print_json, print_table, printable, progress
from opsieve.installed import find_torch
from opsieve.verify.inputs import (
    DTYPES,
    Inputs,
    InputsFromFile,
    InputsFromModel,
    InputsFromShapes,
    parse_argument,
)
from opsieve.verify.outcome import Verdict
from opsieve.verify.recorded import models_of, slim_torch
from opsieve.verify.report import VerifyReport
from opsieve.verify.variation import Variation
from opsieve.verify.verification import USUAL_EFFORT, Effort, ModelUnderTest, verify

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("verify")
@click.argument("build", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
@click.option(
    "--model", "models", type=_FILE, multiple=True, help="Try this model instead of those that DIR was built for."
)
@click.option("--inputs", "inputs_file", type=_FILE, help="Inputs that torch.save wrote: see above.")
@click.option("--shape", "shapes", multiple=True, metavar="SHAPE", help="One argument of the model: see above.")
@click.option(
    "--dtype", type=click.Choice(DTYPES), metavar="DTYPE", default="float32", show_default=True, help="For --shape."
)
@click.option("--method", default="forward", show_default=True, help="The model's method to call.")
@click.option("--against", type=_FILE, help="The Python that has the full PyTorch; by default the running one.")
@click.option("--thorough", is_flag=True, help="Try all settings with all inputs.")
@click.option("--this-processor", is_flag=True, help="Do not try the instruction sets of older processors.")
@click.option(
    "--calls", type=click.IntRange(1, 100), default=USUAL_EFFORT.calls, show_default=True, help="Calls per variation."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=USUAL_EFFORT.seconds,
    show_default=True,
    help="Seconds that one variation may take.",
)
@format_option
def command(
    build: Path,
    models: tuple[Path, ...],
    inputs_file: Path | None,
    shapes: tuple[str, ...],
    dtype: str,
    method: str,
    against: Path | None,
    thorough: bool,
    this_processor: bool,
    calls: int,
    timeout: float,
    output_format: str,
) -> int:
    """Run models on the full PyTorch and on the slim one in DIR, and compare.

    Every model runs in separate processes over many variations: batch and image sizes, memory layouts, dtypes,
    threads, gradient modes, mkldnn on and off, other processors, and inputs that must be refused. Outputs have to be
    the same bit for bit, errors the same word for word.

    \b
    Inputs come from
      a .pt2 model itself, if it was exported with example inputs;
      --inputs FILE: a tensor, a tuple of arguments, a dict of named
        arguments, or a list of any of these;
      --shape, once for each argument:
        1,3,224,224              random, of --dtype
        1,512:int64:0..100       with a dtype and a range
        =16000                   a plain value

    Exit status: 0 identical, 1 not identical, 2 wrong usage or input.
    """
    if inputs_file is not None and shapes:
        raise click.UsageError("give either --inputs or --shape")
    inputs = _inputs(inputs_file, shapes, dtype)
    paths = models or models_of(build)
    if not paths:
        raise click.UsageError("DIR was built for no model: name one with --model")
    stock = find_torch(against)
    with progress() as bars:
        report = verify(
            [ModelUnderTest(path, inputs, method) for path in paths],
            stock=stock,
            slim=slim_torch(build, stock.python),
            effort=Effort(thorough, not this_processor, calls, timeout),
            progress=bars,
        )
    if output_format == "json":
        print_json(report.to_json())
    else:
        print_report(report)
    return 0 if report.identical else 1


def _inputs(file: Path | None, shapes: Sequence[str], dtype: str) -> Inputs:
    if file is not None:
        return InputsFromFile(file)
    if shapes:
        return InputsFromShapes(tuple(parse_argument(shape, dtype) for shape in shapes))
    return InputsFromModel()


def print_report(report: VerifyReport) -> None:
    """A line of counts per model, then every difference with its reason."""
    click.echo(f"full PyTorch {report.stock_version}, slim PyTorch {report.slim_version}\n")
    columns = [Verdict.IDENTICAL, *(v for v in Verdict if v is not Verdict.IDENTICAL and _found(report, v))]
    rows = [
        (printable(model.name), str(counts.total()), *(str(counts[verdict]) for verdict in columns))
        for model in report.models
        for counts in [report.counts(model)]
    ]
    headings = ("variations", *map(str, columns))
    print_table(("model", *headings), rows, right=headings)
    for model in report.models:
        for (verdict, reason), variations in report.differences(model).items():
            click.echo(f"\n{printable(model.name)}: {verdict} in {len(variations)} variations")
            click.echo("\n".join(_wrapped(_summary(variations), "  ")))
            click.echo("\n".join(_wrapped(printable(reason), "    ")))
    click.echo(f"\n{_conclusion(report)}")


def _found(report: VerifyReport, verdict: Verdict) -> bool:
    return any(comparison.verdict is verdict for comparison in report.comparisons)


def _conclusion(report: VerifyReport) -> str:
    if not report.identical:
        return "NOT identical."
    if _found(report, Verdict.UNSTABLE):
        return "Identical wherever the full PyTorch agrees with itself."
    return "Identical: every output bit for bit, every error word for word."


def _summary(variations: Sequence[Variation]) -> str:
    """The inputs, with the settings if there are few of them."""
    if len(variations) <= 2:
        return " | ".join(variation.label for variation in variations)
    inputs = Counter(variation.inputs.label for variation in variations)
    return ", ".join(f"{label} ({count} settings)" for label, count in inputs.items())


def _wrapped(text: str, indent: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from textwrap.wrap(line, WIDTH, initial_indent=indent, subsequent_indent=indent) or [""]
