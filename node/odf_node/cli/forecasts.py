"""Forecasts of pulls and pushes, as lines for people or JSON for scripts: the words of the deed, with ``would``."""

from typing import TYPE_CHECKING, Any

from odf_node.exchange.forecasting import Forecasting, PullForecast, PushForecast, StepForecast
from odf_node.wording import count_of
from odf_protocol.policy import Policy

if TYPE_CHECKING:
    from odf_node.composition import Node

Forecast = PullForecast | PushForecast | StepForecast


def make_forecasting(node: "Node") -> Forecasting:
    """Make the use case on a node."""
    return Forecasting(node.home, node.read_policies(), node.outgoing.open_peer)


def describe_forecast(name: str, forecast: Forecast) -> list[str]:
    """Say in a line or a few what would be done with the dataset ``name``."""
    match forecast:
        case StepForecast():
            if forecast.is_up_to_date:
                return [f"{name}: up to date"]
            return [f"{name}: its query would be run over what is new in {count_of(forecast.inputs, 'input')}"]
        case PushForecast():
            return [f"{name}: {_describe_push(forecast)}"]
        case PullForecast():
            return [f"{name}: {line}" for line in _describe_pull(forecast)]


def _describe_push(forecast: PushForecast) -> str:
    growth = forecast.growth
    if forecast.is_fork:
        return f"{forecast.url} has another or a newer history, and would reject this one"
    if not growth.blocks:
        return f"{forecast.url} has everything already"
    whole = "" if forecast.known is not None else ", as it shows nothing of it"
    return (
        f"{forecast.url} would be offered {count_of(growth.blocks, 'new block')} with "
        f"{count_of(growth.files, 'file')} ({growth.size_bytes:,} bytes){whole}"
    )


def _describe_pull(forecast: PullForecast) -> list[str]:
    growth, rule = forecast.growth, forecast.rule
    if forecast.is_fork:
        return [f"{forecast.url} has another or an older history than this node, which would be rejected"]
    if not growth.blocks or rule is None:
        return ["up to date"]
    files = f" in {count_of(growth.files, 'file')} ({growth.size_bytes:,} bytes)" if growth.files else ""
    new = "" if forecast.record else ", new to this node"
    lines = [f"would take {count_of(growth.blocks, 'new block')} with {count_of(growth.rows, 'row')}{files}{new}"]
    steps = count_of(growth.steps, "step")
    if forecast.reexecutes:
        lines.append(f"{steps} would be re-executed here, by {rule.name}")
        if forecast.lacking:
            lines.append(
                f"{', '.join(forecast.lacking)}, which its query reads, would be needed and is not here: pull it "
                "first, or say --recursive"
            )
    elif growth.steps and rule.policy is Policy.ATTESTED:
        lines.append(f"{steps} would need {rule.threshold} attestations, by {rule.name}")
    elif growth.steps:
        lines.append(f"{steps} would not be re-executed, by {rule.name}")
    elif growth.rows:
        lines.append("root data: chain, rows, hashes and signatures would be checked")
    return lines


def forecast_to_json(name: str, forecast: Forecast) -> dict[str, Any]:
    """Give a forecast as plain values."""
    common: dict[str, Any] = {"dataset": name, "dryRun": True}
    if isinstance(forecast, StepForecast):
        return common | {"upToDate": forecast.is_up_to_date, "grownInputs": forecast.inputs}
    growth = forecast.growth
    common |= {
        "url": forecast.url,
        "upToDate": not growth.blocks and not forecast.is_fork,
        "otherHistory": forecast.is_fork,
        "newBlocks": growth.blocks,
        "newRows": growth.rows,
        "newFiles": {"files": growth.files, "bytes": growth.size_bytes},
        "steps": growth.steps,
    }
    if isinstance(forecast, PullForecast):
        common |= {
            "reexecutes": forecast.reexecutes,
            "rule": forecast.rule.name if forecast.rule else None,
            "lackingInputs": list(forecast.lacking),
        }
    return common
