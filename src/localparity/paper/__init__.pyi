from localparity.paper._runner import run_missing as run_missing
from localparity.paper._runs import Run as Run
from localparity.paper._runs import grid as grid
from localparity.paper._store import Store as Store
