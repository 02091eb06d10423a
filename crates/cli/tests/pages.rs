//! Pages of counters that are damaged in any way: who reads them says something or nothing, and never panics.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tidegate_cli::arguments::Ranks;
use tidegate_cli::jobs::FoundJob;
use tidegate_cli::recording::page;
use tidegate_cli::report::table::{self, Form};
use tidegate_cli::report::width::Width;
use tidegate_cli::report::{Job, Launch, json, launches};
use tidegate_cli::top::screen::Screen;
use tidegate_cli::top::view::JobView;
use tidegate_cli::top::watch::Update;
use tidegate_cli::top::{self, look::look, text};
use tidegate_flow::{Config, SchemeName};
use tidegate_link::stats::{self, PAGE_BYTES, StatsConfig};
use tidegate_link::{ShmConfig, ShmLink};

/// Numbers that are never alike.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    /// What is likely to be wrong in some place.
    fn word(&mut self) -> u64 {
        let any = self.next();
        [0, 1, 2, 16, u64::MAX, u64::MAX - 1, 1 << 63, 1 << 32, any, any >> 40, 0x0024_0010_0010_0010][self.below(11)]
    }
}

/// The page of an endpoint of a rank.
fn page_of(rank: u32) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let stats = StatsConfig {
        dir: folder.path().to_owned(),
        rank: Some(rank),
        job_size: Some(4),
        launch: Some("parent 7".into()),
        mpi: Some("mpich"),
    };
    let directory = folder.path().to_owned();
    let flow = Config::new(SchemeName::Dynamic, 3, 16, 2);
    let link = ShmLink::new(ShmConfig { stats: Some(stats), directory, ..ShmConfig::new(flow) }).unwrap();
    let name = format!("{}-0.counters", std::process::id());
    let bytes = fs::read(folder.path().join(name)).unwrap();
    drop(link);
    assert_eq!(bytes.len(), PAGE_BYTES);
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

fn write(folder: &Path, rank: usize, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    fs::write(folder.join(format!("{}-0.counters", 100 + rank)), bytes).unwrap();
}

/// All that anybody makes of the pages in a folder. Returns how many could be read.
fn read_all(folder: &Path) -> usize {
    let job = FoundJob { id: "1".into(), pages: folder.to_owned(), description: None };
    let (before, now) = (look(folder).unwrap(), look(folder).unwrap());
    let views: Vec<JobView> = now
        .launches
        .iter()
        .zip(&before.launches)
        .map(|(now, before)| {
            let mut look = now.look.clone();
            look.follow(&before.look);
            look.at += Duration::from_secs(1);
            JobView::new(&job, Some(1), Some(&before.look), &look)
        })
        .collect();
    assert!(text::jobs(&views).len() < 1 << 20);
    assert!(top::json::jobs(&views, Duration::ZERO).to_string().len() < 1 << 22);
    let mut screen = Screen::new(Duration::from_secs(1), &|_| None);
    screen.update(Update { views, cost: Duration::ZERO });
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();

    let mut pages = stats::read_dir(folder).unwrap().read;
    let count = pages.len();
    let _ = page::held_up(&pages);
    page::until_now(&mut pages);
    pages.iter().for_each(|one| _ = (page::facts(one), page::rows(one), page::values(one)));
    let all = Job::new(&pages);
    let launches: Vec<Launch> = launches::split(pages).iter().map(|pages| Launch::of(pages, None)).collect();
    let form = Form { mpi: None, wall_time: Some(Duration::from_secs(1)), ranks: Ranks::All, width: Width::USUAL };
    assert!(table::render_all(&launches, &form).len() < 1 << 20);
    assert!(json::pages(folder, &all, &launches).to_string().len() < 1 << 22);
    count
}

#[test]
fn damaged_pages_make_nobody_panic() {
    let mut random = Random(18);
    let whole: Vec<Vec<u64>> = (0..3).map(page_of).collect();
    let words = PAGE_BYTES / 8;
    let mut read = 0;
    for round in 0..400 {
        let folder = tempfile::tempdir().unwrap();
        for (rank, page) in whole.iter().enumerate() {
            let mut page = page.clone();
            // Few words, or all from some place on; sometimes the description is spared, which all else hangs on.
            let first = [1, 20, 128, 190][random.below(4)];
            let damaged = [1, 5, 200, 3 * words][random.below(4)];
            for _ in 0..damaged {
                page[first + random.below(words - first)] = random.word();
            }
            // Rows that are in use, and name pages that are there.
            if round % 2 == 0 {
                page[22] = 1 + random.next() % 2;
                for row in (200..words).step_by(7) {
                    page[row] = whole[random.below(3)][17];
                }
            }
            page.truncate(if random.below(5) == 0 { random.below(words) } else { words });
            write(folder.path(), rank, &page);
        }
        read += read_all(folder.path());
    }
    assert!(read > 200, "nearly all were refused: {read}");
}
