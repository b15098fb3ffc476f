"""The coordinator's side: a ServerApp that takes a federation from its folder and carries it through its stages.

It uses none of Flower's strategies: it averages nothing, and asks for no number of examples, loss or metric.
"""

from collections.abc import Collection, Iterable, Mapping

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from tacit.engines.flower import Answer, Status
from tacit.engines.flower.client_app import answer as read_answer
from tacit.engines.flower.client_app import question
from tacit.engines.flower.rounds import Carrier, Patience, RunFolder
from tacit.engines.folders import read_key


def main(grid: Grid, context: Context) -> None:
    """Carries a run to its end. Raises if the run cannot go on; another ``flwr run`` over the same folder continues
    it."""
    settings = context.run_config
    run = RunFolder(str(settings["federation"]), read_key(str(settings["key"])))
    patience = Patience(start=float(settings["start-seconds"]), stage=float(settings["stage-seconds"]))
    Carrier(run, GridLink(grid), patience).run(run.needed)


class GridLink:
    """A link to nodes through Flower's Grid. The question decides which node an answer belongs to, not the answer."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._open: dict[str, tuple[int, str]] = {}  # node and kind of each unanswered question, by its id
        self._unsent: list[Answer] = []

    def nodes(self) -> Collection[int]:
        return set(self._grid.get_node_ids())

    def send(self, kind: str, messages: Mapping[int, bytes], seconds: float) -> None:
        for node, content in messages.items():  # one by one, to know which message the grid could not send
            ids = [id for id in self._grid.push_messages([question(kind, node, content, seconds)]) if id]
            self._open |= dict.fromkeys(ids, (node, kind))
            if not ids:
                self._unsent.append(Answer(node, kind, Status.FAILED))

    def answers(self) -> Iterable[Answer]:
        yield from self._unsent
        self._unsent.clear()
        for message in self._grid.pull_messages(list(self._open)) if self._open else ():
            origin = self._open.pop(message.metadata.reply_to_message_id, None)
            if origin is not None:
                yield read_answer(message, *origin)


app = ServerApp()
app.main()(main)
