from localparity.report._bundle import write_bundle as write_bundle
from localparity.report.displays._curves import GapCurveDisplay as GapCurveDisplay
from localparity.report.displays._curves import McdpProfileDisplay as McdpProfileDisplay
from localparity.report.displays._curves import SharesDisplay as SharesDisplay
from localparity.report.page._monitor import write_monitor_page as write_monitor_page
from localparity.report.page._page import write_page as write_page
