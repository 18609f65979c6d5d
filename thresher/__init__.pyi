from pipeline.api import open_results as open_results
from pipeline.api import plan_sample as plan_sample
from pipeline.api import run as run
from pipeline.errors import ThresherError as ThresherError
from pipeline.functions.before_after import before_after as before_after
from pipeline.functions.change_points import change_points as change_points
from pipeline.functions.compare import compare as compare
from pipeline.functions.entity_recognition import entity_recognition as entity_recognition
from pipeline.functions.geocoding import geocoding as geocoding
from pipeline.functions.planned import Planned as Planned
from pipeline.functions.ranking import ranking as ranking
from pipeline.functions.result import Result as Result
from pipeline.functions.threshold_sweep import threshold_sweep as threshold_sweep
from pipeline.runs.run import Run as Run

__version__: str
