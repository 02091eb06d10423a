//! A page as it is shown on a terminal: its tables as those of `tidegate sim` and `tidegate plan`, in columns.

use comfy_table::{ContentArrangement, Table, presets};

/// The text of a page, with each table in columns that together are at most as wide as the terminal.
pub fn shown(page: &str, columns: usize) -> String {
    let mut text = String::with_capacity(page.len());
    let mut rows: Vec<Vec<String>> = Vec::new();
    for line in page.lines() {
        if let Some(cells) = cells(line) {
            rows.push(cells);
            continue;
        }
        text += &table(&std::mem::take(&mut rows), columns);
        // A terminal shows no pictures.
        if !line.starts_with("![") {
            text += line;
            text.push('\n');
        }
    }
    text + &table(&rows, columns)
}

/// The cells of a line of a table. `None`: it is none.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = vec![String::new()];
    let mut letters = inner.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, cells.last_mut()) {
            ('|', _) => cells.push(String::new()),
            ('\\', Some(cell)) if letters.peek() == Some(&'|') => cell.extend(letters.next()),
            (other, Some(cell)) => cell.push(other),
            (_, None) => {}
        }
    }
    Some(cells.into_iter().map(|cell| cell.trim().to_owned()).collect())
}

/// The second of the rows is the rule below the head, which is left out.
fn table(rows: &[Vec<String>], columns: usize) -> String {
    let Some((head, rest)) = rows.split_first() else { return String::new() };
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
    table.set_header(head).add_rows(rest.iter().skip(1));
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_columns_and_all_else_stays() {
        let page = "## P-x\n\n![a picture](x.svg)\n\nTimes:\n\n| slots | time |\n|---|---|\n| 8 | 1.69 s |\n| 16 \\| 32 | 2 ms |\n\nThe end.\n";
        let text = shown(page, 80);
        assert_eq!(text, "## P-x\n\n\nTimes:\n\n slots    time\n 8        1.69 s\n 16 | 32  2 ms\n\nThe end.\n");
    }

    #[test]
    fn a_table_is_no_wider_than_the_terminal() {
        let page = format!("| | statement |\n|---|---|\n| reproduced | {} |\n", "word ".repeat(60));
        let text = shown(&page, 50);
        assert!(text.lines().all(|line| line.chars().count() <= 50) && text.lines().count() > 6, "{text}");
    }
}
