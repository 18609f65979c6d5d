from pipeline.api.before_after import before_after as before_after
from pipeline.api.change_points import change_points as change_points
from pipeline.api.compare import compare as compare
from pipeline.api.entity_recognition import entity_recognition as entity_recognition
from pipeline.api.geocoding import geocoding as geocoding
from pipeline.api.planned import Planned as Planned
from pipeline.api.ranking import ranking as ranking
from pipeline.api.result import Result as Result
from pipeline.api.running import open_results as open_results
from pipeline.api.running import plan_sample as plan_sample
from pipeline.api.running import run as run
from pipeline.api.threshold_sweep import threshold_sweep as threshold_sweep
from pipeline.errors import ThresherError as ThresherError
from pipeline.runs.run import Run as Run

__version__: str
