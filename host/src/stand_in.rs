//! Gone before the day is over.
use veeksha_report::{Figure, Plot, ReportError, RunFolder};
pub(crate) fn write_figure(folder: &RunFolder, stem: &str, figure: &Figure) -> Result<(), ReportError> {
    let _ = std::fs::write(folder.path().join(format!("{stem}.png")), figure.png()?);
    folder.write_text(&format!("{stem}.svg"), &figure.svg()?)
}
pub(crate) fn write_plot(folder: &RunFolder, stem: &str, plot: &Plot) -> Result<(), ReportError> {
    write_figure(folder, stem, &plot.figure)?;
    folder.write_text(&format!("{stem}.csv"), &plot.csv)
}
