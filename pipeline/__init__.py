"""thresher: precision and recall at every threshold, with or without gold labels, over Parquet data of any size."""

from .api import __all__, __dir__, __getattr__  # noqa: F401 - names are loaded when they are used

TYPE_CHECKING = False  # as in `api`
if TYPE_CHECKING:
    from .api import Planned as Planned
    from .api import Result as Result
    from .api import Run as Run
    from .api import ThresherError as ThresherError
    from .api import __version__ as __version__
    from .api import open_results as open_results
    from .api import plan_sample as plan_sample
    from .api import run as run
    from .api import sample as sample
