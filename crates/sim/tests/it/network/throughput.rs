use tidegate_sim::topology::{End, RouterId};
use tidegate_sim::{NetworkParameters, Time, Topology};

use super::traffic::{grids, random_pairs, tornado};
use super::world::{Random, World, round_numbers, tight_buffers};

/// A full packet on a link, by [`round_numbers`].
const PACKET_TIME: Time = Time::from_nanoseconds(64);

#[test]
fn no_link_carries_more_than_its_rate_and_busy_links_come_near_it() {
    for topology in grids() {
        let mut world = World::new(topology.clone(), round_numbers());
        random_pairs(&mut world, &mut Random(7), 4_000);
        tornado(&mut world, 200);
        world.run_dry();
        let mut busiest = Time::ZERO;
        for link in world.network.links() {
            assert!(link.busy <= world.now, "{topology}: {link:?} was busy longer than the run of {}", world.now);
            if let End::Router(_) = link.to {
                assert_eq!(link.busy, PACKET_TIME * link.packets);
                busiest = busiest.max(link.busy);
            }
        }
        assert!(busiest.0 * 2 > world.now.0, "{topology}: the busiest link was idle most of the time");
    }
}

#[test]
fn one_stream_fills_a_link_to_its_rate() {
    const PACKETS: u64 = 2_000;
    let mut world = World::new(Topology::mesh(&[6]).expect("legal"), round_numbers());
    (0..PACKETS).for_each(|_| world.send(0, 5));
    world.run_dry();
    // The first packet's way, then one packet after the other.
    let first = world.network.uncontended_latency(tidegate_sim::NodeId(0), tidegate_sim::NodeId(5), 56);
    assert_eq!(world.now, first + PACKET_TIME * (PACKETS - 1));
}

#[test]
fn buffers_smaller_than_the_round_trip_of_a_credit_limit_a_stream_to_buffer_per_round_trip() {
    const PACKETS: u64 = 1_000;
    for buffer in [1, 2] {
        let parameters = NetworkParameters { channel_buffer_packets: buffer, ..round_numbers() };
        let mut world = World::new(Topology::mesh(&[5]).expect("legal"), parameters);
        (0..PACKETS).for_each(|_| world.send(0, 4));
        world.run_dry();
        // The last link's is the longest: over it, the whole packet into the router, out to the node, and the credit
        // back.
        let round_trip = Time::from_nanoseconds(30 + 20 + 64 + 32 + 30);
        let period = Time((round_trip.0 / u64::from(buffer)).max(PACKET_TIME.0));
        let took = world.now.since(world.delivered[0].0);
        assert!(took >= Time(period.0 * (PACKETS - 2)), "faster than the credits allow: {took}");
        assert!(took <= Time(period.0 * (PACKETS + 2)), "slower than the credits allow: {took}");
    }
}

#[test]
fn halves_of_a_grid_exchange_no_more_than_the_bisection_carries_and_nearly_as_much() {
    const PACKETS_EACH: u64 = 300;
    for topology in
        [Topology::mesh(&[4, 4]), Topology::mesh(&[4, 4, 4]), Topology::torus(&[8, 4]), Topology::mesh(&[2, 6])]
    {
        let topology = topology.expect("legal");
        let Topology::Grid(grid) = &topology else { panic!("a grid") };
        let width = u32::from(grid.sizes()[0]);
        let mut world = World::new(topology.clone(), round_numbers());
        for _ in 0..PACKETS_EACH {
            for node in 0..world.nodes() {
                let (x, row) = (node % width, node / width * width);
                world.send(node, row + (x + width / 2) % width);
            }
        }
        world.run_dry();
        // Half the nodes send to the right across links that halve the first dimension, and half to the left.
        let rows = u64::from(world.nodes() / width);
        let links = if grid.is_torus() && width > 2 { 2 * rows } else { rows };
        let bound = PACKET_TIME * (u64::from(world.nodes()) / 2 * PACKETS_EACH / links);
        assert!(world.now >= bound, "{topology}: {} is below the bound {bound}", world.now);
        assert!(world.now.0 < bound.0 * 11 / 10, "{topology}: {} is far above the bound {bound}", world.now);
    }
}

#[test]
fn bisections_are_those_of_the_shape() {
    let of = |topology: Result<Topology, _>| topology.expect("legal").bisection_links();
    assert_eq!(of(Topology::mesh(&[4, 4, 4])), Some(16));
    assert_eq!(of(Topology::torus(&[4, 4, 4])), Some(32));
    assert_eq!(of(Topology::mesh(&[8, 3])), Some(3));
    assert_eq!(of(Topology::mesh(&[3, 3])), None);
    assert_eq!(of(Topology::switch(8)), None);
}

#[test]
fn packets_of_both_lanes_share_a_link_evenly() {
    // From node 0 along the line to nodes 4 and 5, which are in different lanes, and from node 1 likewise.
    let mut world = World::new(Topology::mesh(&[6]).expect("legal"), tight_buffers());
    for _ in 0..600 {
        world.send(0, 4);
        world.send(1, 5);
    }
    world.run_until(Time::from_nanoseconds(40_000));
    let (even, odd) = (world.count_to(4), world.count_to(5));
    assert!(even.abs_diff(odd) <= 2 && even > 100, "{even} and {odd} packets");
    let shared = world.network.links().find(|link| link.from == RouterId(2) && link.to == End::Router(RouterId(3)));
    assert!(shared.expect("a link").busy > Time::ZERO);
}
