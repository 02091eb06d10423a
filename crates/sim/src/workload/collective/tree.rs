//! k-nomial trees: who is whose parent.
//!
//! Members are counted from the root on, in a circle. Written in base k, a member's parent is itself with its lowest
//! digit that is not zero set to zero; its subtree are the members that share all digits from there up. With k = 2 the
//! tree is binomial.

use crate::workload::Communicator;

/// The members of a group, counted from a root on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circle {
    root: u32,
    size: u32,
    /// Which one this member is; the root is 0.
    pub me: u32,
}

impl Circle {
    pub fn new(group: &Communicator, root: u32) -> Self {
        let size = group.size();
        Circle { root, size, me: (group.me() + size - root) % size }
    }

    /// The member that is the `index`-th.
    pub fn member(self, index: u32) -> u32 {
        (index + self.root) % self.size
    }

    /// This member's place in a k-nomial tree of all.
    pub fn place(self, radix: u32) -> Place {
        place(self.me, self.size, radix)
    }
}

/// The place of one member in a k-nomial tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Counted from the root; `None` for the root.
    pub parent: Option<u32>,
    /// Counted from the root, the largest subtree first: each with the members of its subtree, which follow each other.
    pub children: Vec<Subtree>,
    /// Members of this member's own subtree, itself included.
    pub members: u32,
}

/// Consecutive members, counted from the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subtree {
    pub first: u32,
    pub members: u32,
}

/// The place of `me`, counted from the root, among `size` members. Panics if `radix` is below 2.
fn place(me: u32, size: u32, radix: u32) -> Place {
    assert!(radix >= 2, "a tree branches at least in two");
    let (me, size, radix) = (u64::from(me), u64::from(size), u64::from(radix));
    let mut span = 1;
    while span < size && me / span % radix == 0 {
        span *= radix;
    }
    let parent = (me > 0).then(|| (me - me / span % radix * span) as u32);
    let mut children = Vec::new();
    let mut step = span / radix;
    while step > 0 {
        let firsts = (1..radix).map(|digit| me + digit * step).take_while(|&first| first < size);
        children.extend(firsts.map(|first| Subtree { first: first as u32, members: step.min(size - first) as u32 }));
        step /= radix;
    }
    Place { parent, children, members: span.min(size - me) as u32 }
}

/// A member's place in a complete binary tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BinaryPlace {
    /// Counted from the root; `None` for the root.
    pub parent: Option<u32>,
    /// Counted from the root: the odd one first at the root, and below it all odd or all even.
    pub children: Vec<u32>,
}

/// The place of `me`, counted from the root, among `size` members. Level l has the 2^l members from 2^l − 1 on; the
/// children of a member there are those 2^l and 2·2^l behind it. So all members below the first child of the root are
/// odd, and all below the second one even.
pub(super) fn binary_place(me: u32, size: u32) -> BinaryPlace {
    let span = 1 << (me + 1).ilog2();
    let children = [me + span, me + 2 * span].into_iter().filter(|&child| child < size).collect();
    let parent = (me > 0).then(|| if me - span / 2 < span - 1 { me - span / 2 } else { me - span });
    BinaryPlace { parent, children }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_but_the_root_is_the_child_of_its_parent_once() {
        for radix in [2, 3, 4, 7] {
            for size in 1..70 {
                let mut parents = vec![None; size as usize];
                for me in 0..size {
                    for child in place(me, size, radix).children {
                        assert_eq!(parents[child.first as usize].replace(me), None, "{radix} {size} {me}");
                    }
                }
                let found: Vec<_> = (0..size).map(|me| place(me, size, radix).parent).collect();
                assert_eq!(found, parents, "radix {radix}, size {size}");
            }
        }
    }

    #[test]
    fn a_binary_tree_has_all_members_once_and_each_half_those_of_one_kind() {
        for size in 1..70 {
            let mut parents = vec![None; size as usize];
            for me in 0..size {
                for child in binary_place(me, size).children {
                    assert_eq!(parents[child as usize].replace(me), None, "{size} {me}");
                    assert!(me == 0 || child % 2 == me % 2, "{size} {me}");
                }
            }
            let found: Vec<_> = (0..size).map(|me| binary_place(me, size).parent).collect();
            assert_eq!(found, parents, "size {size}");
            assert!(parents[1..].iter().all(Option::is_some), "size {size}");
        }
    }

    #[test]
    fn subtrees_are_what_parents_say() {
        for (radix, size) in [(2, 1), (2, 13), (3, 27), (4, 50)] {
            for me in 0..size {
                let own = place(me, size, radix);
                assert_eq!(own.members, 1 + own.children.iter().map(|child| child.members).sum::<u32>());
                for child in own.children {
                    assert_eq!(place(child.first, size, radix).members, child.members);
                }
            }
        }
    }
}
