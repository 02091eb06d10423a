//! The public `Endpoint` over an in-memory network: tests that read as sentences.

mod atomics;
mod batches;
mod bounds;
mod carried;
mod closing;
mod death;
mod eager;
mod fences;
mod few;
mod hostile;
mod liveness;
mod looking;
mod many_senders;
mod matching;
mod multi_receive;
mod myself;
mod pressure;
mod programs;
mod reference;
mod remote_programs;
mod rendezvous;
mod rma;
mod timing;
mod transfers;
mod uneven;
