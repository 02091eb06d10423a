//! Memory of applications: such as the system does not reach from outside, and such as is freed while peers use it. C
//! programs, as in `programs.rs`.

use crate::toolbox::run;

#[test]
fn memory_that_only_its_own_process_reaches_is_sent_and_is_read_and_written_by_peers() {
    let mailbox = ("FI_TIDEGATE_BULK", "mailbox");
    for setting in [("FI_TIDEGATE_BULK", "auto"), ("FI_TIDEGATE_BULK", "direct"), mailbox] {
        run("unreachable secret", &[setting, ("FI_TIDEGATE_CHUNK_SIZE", "64k")]);
    }
    run("unreachable secret", &[("FI_TIDEGATE_BOUNCE_BUFFERS", "0")]);
}

#[test]
fn short_accesses_in_a_row_take_few_system_calls_and_end_each_as_it_would_alone() {
    let calls = ("FI_TIDEGATE_PROGRESS", "calls");
    for program in ["rows", "rows refused"] {
        run(program, &[]);
        run(program, &[calls]);
    }
    run("rows", &[("FI_TIDEGATE_BULK", "mailbox")]);
    run("rows", &[("FI_TIDEGATE_PROGRESS", "thread")]);
}

#[test]
fn memory_of_the_receiver_that_is_none_fails_its_receive_and_not_its_process() {
    run("unreachable wrong", &[("FI_TIDEGATE_BULK", "direct")]);
}

#[test]
fn memory_whose_region_or_endpoint_is_closed_while_a_peer_writes_there_is_the_applications_own_again() {
    run("freed", &[]);
    run("freed stopped", &[("FI_TIDEGATE_BULK", "direct")]);
}
