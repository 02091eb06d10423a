//! Pages of counters that are damaged in any way, or are none: the command says something or nothing, and never panics.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::process::Command;
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
        chosen: Default::default(),
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
    let job = FoundJob::of_pages("1", folder);
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
    let mut screen = Screen::new(Duration::from_secs(1), String::new(), &|_| None);
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
    for round in 0..150 {
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
    assert!(read > 75, "nearly all were refused: {read}");
}

/// What the command says of a folder, and how it ends. It is not waited for without end.
fn tidegate(words: &[&str], folder: &Path) -> (String, Option<i32>) {
    let command = env!("CARGO_BIN_EXE_tidegate");
    let output = Command::new("timeout").arg("20").arg(command).args(words).arg(folder).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (said, output.status.code())
}

// fi_tidegate(7): "What reads them (tidegate(1)) leaves out or refuses, by name, what is no regular file, has a second
// name (a hard link), or belongs neither to its user nor to the owner of the folder: so root sees a user's files in a
// folder of that user."
#[test]
fn what_others_put_in_the_place_of_files_is_left_out_by_name_and_waited_for_by_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let make_pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let path = |name: &str| folder.path().join(name);
    write(folder.path(), 0, &page_of(0));
    fs::copy(path("100-0.counters"), path("page")).unwrap();
    symlink(path("page"), path("101-0.counters")).unwrap();
    fs::hard_link(path("page"), path("102-0.counters")).unwrap();
    make_pipe(&path("103-0.counters"));
    make_pipe(&path("103-0.troubles"));
    let mut left_out = 3;
    write(folder.path(), 4, &page_of(1));
    if chown(path("104-0.counters"), Some(65534), None).is_ok() {
        left_out += 1;
    } else {
        fs::remove_file(path("104-0.counters")).unwrap();
    }
    let (said, code) = tidegate(&["counters"], folder.path());
    assert!(code == Some(0) && said.contains("tidegate: 1 process"), "{code:?} {said}");
    assert!(said.contains(&format!("{left_out} pages of counters are left out")), "{said}");
    assert!(said.contains("101-0.counters: it is a link, not a file: remove it, or name a folder"), "{said}");
    let (said, code) = tidegate(&["top", "--once"], folder.path());
    assert!(code == Some(0) && said.contains(&format!("{left_out} pages of counters are left out")), "{code:?} {said}");
    // In a folder of that user, root sees them.
    if left_out == 4 {
        chown(folder.path(), Some(65534), None).unwrap();
        assert_eq!(stats::read_dir(folder.path()).unwrap().read.len(), 2);
    }
    make_pipe(&path("recording.json"));
    let (said, code) = tidegate(&["report"], folder.path());
    assert!(code == Some(2) && said.contains("recording.json: it is a pipe, not a file: remove it"), "{code:?} {said}");
}
