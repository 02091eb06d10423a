//! Every interleaving of small programs, on the endpoint's own code.
//!
//! `layout` says what is explored, `actor` runs one endpoint with its program over its `link`, `machine` remembers the
//! steps of an endpoint so that each is run once, `search` goes through all states of the world, `judge` knows what MPI
//! allows at the end. `programs` are written for rules, `random_programs` for what nobody thought of.
//! `TIDEGATE_EXPLORE=all` explores more, for an hour.
//!
//! Can these tests fail? Rules of `window` were broken on purpose, one at a time, and some program noticed each (W1-W7
//! are the rules' names there):
//!
//! * W1: an announcement that costs nothing; a window that grows and does not say so, shrinks by what is not free or
//!   loses it: most programs. A receiver that takes more than its window: `hostile.rs` in `endpoint`. Room that is not
//!   given back after a receive: `senders_that_close`.
//! * W3: sends that leave past one in doubt, or past an offered one: most programs; a short one past a long one:
//!   `a_canceled_question_is_not_answered_to_another`. Nothing leaves when a batch is acknowledged, an offer declined
//!   or taken: `receives_that_are_canceled`.
//! * W4: no deferral notice, or no second one: most programs.
//! * W5: no query, or only for the first of several senders: most programs; the same one again for ever, or no
//!   further one after `NoMatch`: `receives_that_nothing_satisfies`; none after an offer: `receives_that_are_canceled`.
//! * W6: a deferral notice that is matched though an older query is open: `receives_one_by_one`.
//! * W7: an answer while deferral notices are in doubt: `receives_one_by_one`; an offer that anybody may take:
//!   `a_canceled_question_is_not_answered_to_another`; a send that is offered before its deferral notice has left, an
//!   answer to another look: the random programs of `endpoint`; a declined or claimed send that stays offered:
//!   `probes_before_receives`, `claims_that_nobody_calls_for`; a look that does not see what came just before its
//!   answer: `looks_while_what_they_look_for_leaves`; a discarded send that the receiver goes on to count, or whose
//!   sender is not told: `messages_that_are_discarded`.
//! * Long packets: one that counts for a slot less or more than it has, or whose slots behind the first are dropped:
//!   `long_packets_with_one_to_three_credits`.
//! * Deaths: accounts of a dead sender that are kept: `looks_for_messages_of_a_sender_that_dies`.

mod actor;
mod digest;
mod few;
mod judge;
mod layout;
mod link;
mod machine;
mod programs;
mod random_programs;
mod search;
