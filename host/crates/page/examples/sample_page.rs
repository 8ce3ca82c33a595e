//! Writes the page of a generated run, for visual inspection: `sample_page OUT.html [REQUESTS]
//! [LIMIT]`.

use std::error::Error;

#[path = "../tests/sample/mod.rs"]
mod sample;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "report.html".to_owned());
    let requests: usize = arguments.next().map_or(Ok(3000), |text| text.parse())?;
    let limit: usize = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let events = sample::run::events(requests, 180.0, 7);
    let data = sample::page_data::data(&events, limit);
    let html = veeksha_page::page(&data);
    std::fs::write(&path, &html)?;
    println!(
        "{path}: {} requests, {:.2} MB",
        data.requests.rows.len(),
        html.len() as f64 / 1e6
    );
    Ok(())
}
