//! The whole language over the real engine: messages, carried loops, blocks, versions and children.

mod attempt;
mod blocks;
mod carry;
mod children;
mod gates;
mod mailbox;
mod messages;
mod pruning;
mod requests;
mod versions;
