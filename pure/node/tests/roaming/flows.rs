//! `docs/flows/`: the message flows of moves, as observed between five hosts.

use super::hosts::{AGENT, HOME, MOBILE, NAMES, Policies};
use super::world::{Hosts, Message, World};
use node::mobile_ip::{Event as Told, HomeEvent, MobileEvent};
use node::{Event, Handover};
use std::fmt::Write;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Pauses from this length on are drawn.
const PAUSE: Duration = Duration::from_millis(100);

/// Names of the hosts in a drawing.
const PARTIES: [&str; 5] = ["mobile", "home", "a", "b", "c"];

struct Flow {
    page: &'static str,
    title: &'static str,
    about: &'static str,
    policies: fn() -> Policies,
    /// Steps before the drawing starts, and the drawn steps.
    before: fn(&mut World),
    play: fn(&mut World),
}

const FLOWS: &[Flow] = &[
    Flow {
        page: "handover-initialisation",
        title: "A mobile node registers, and its agent gets keys",
        about: "As figure 4 of the paper on MML-IPsec has it: the registration waits for nothing, and what has to be \
                agreed on goes on beside it. Home offers the agent's slot to the mobile node as soon as there is a \
                tunnel; its keys leave when that has accepted.",
        policies: || of_two(Handover::Push),
        before: |_| {},
        play: |world| {
            world.set_link(0, true);
            world.run_for(6 * SECOND);
        },
    },
    Flow {
        page: "handover-push",
        title: "A move, after which the gateway gives the keys",
        about: "From the registration on, both ends seal on the first child, whose keys no agent has. The slot of the \
                agent where the mobile node is now is offered and accepted, and its keys follow; that of the agent before is \
                deleted two seconds later (figures 7 and 8 of the paper; DESIGN section 5, push).",
        policies: || of_two(Handover::Push),
        before: at_a,
        play: |world| {
            world.move_to(1);
            world.run_for(6 * SECOND);
        },
    },
    Flow {
        page: "handover-neighbours",
        title: "Neighbours get keys before anybody comes",
        about: "Agents say to which others mobile nodes may go from them (NEIGHBOURS, figure 5 of the paper), and home \
                prepares a slot for each: nothing is sealed in it yet.",
        policies: || of_two(Handover::Pkd),
        before: |_| {},
        play: |world| {
            world.set_link(0, true);
            world.run_for(6 * SECOND);
        },
    },
    Flow {
        page: "handover-pkd",
        title: "A move to a neighbour that has its keys",
        about: "The registration is all that has to be said: each end sends on the slot of the new agent as soon as it \
                knows of the move. Afterwards the slot that was left gets new keys, so that none is used twice.",
        policies: || of_two(Handover::Pkd),
        before: at_a,
        play: |world| {
            world.move_to(1);
            world.run_for(6 * SECOND);
        },
    },
    Flow {
        page: "handover-pkd-shared",
        title: "Moves among agents that share keys",
        about: "With `holders = 2`, where mobile nodes go from a to b and from b to c. Both a and b have the keys of one slot, so \
                the move to b changes no SPI. Then c is near as well, and would be the third that has them: home and the mobile node \
                make new ones (CREATE_CHILD_SA), which go to b and c alone (figure 9 of the paper). Until then a can read on. Those \
                before are taken back from a and b later, when nothing is under way any more that is sealed in them; that is not \
                drawn.",
        policies: || Policies::shared(2),
        before: at_a,
        play: |world| {
            world.move_to(1);
            world.run_for(2 * SECOND);
        },
    },
    Flow {
        page: "handover-dkm",
        title: "A move, after which the agent before gives the keys",
        about: "The registration carries a token of the mobile node for the agent before. With it the new agent asks for \
                the keys that it has (KEY_REQUEST, figure 6 of the paper), beside the registration and on an IKE SA that is \
                there. Both ends go on in the slot that was left, for two seconds at most; meanwhile the new agent gets one of its \
                own, as by push (figure 8).",
        policies: || of_two(Handover::Dkm),
        before: at_a,
        play: |world| {
            world.move_to(1);
            world.run_for(6 * SECOND);
        },
    },
    Flow {
        page: "handover-lifetime",
        title: "The keys of a slot have lived",
        about: "Either end asks for new ones, which home gives to the agent where the mobile node is, and both send with them \
                when it has them (figure 7 of the paper). Those of before are deleted when nothing comes on them any more.",
        policies: || Policies {
            child_lifetime: 30 * SECOND,
            ..of_two(Handover::Push)
        },
        before: |world| {
            world.set_link(0, true);
            world.run_for(20 * SECOND);
        },
        play: |world| world.run_for(15 * SECOND),
    },
    Flow {
        page: "handover-leave",
        title: "A mobile node is turned off",
        about: "It ends its tunnel and deregisters. With the tunnel its slots end, and home takes the keys back from the \
                agents that had some (section 4.4 of the paper).",
        policies: || of_two(Handover::Push),
        before: at_a,
        play: |world| {
            world.command(MOBILE, |node, now| node.shutdown(now));
            world.run_for(SECOND / 2);
            world.command(MOBILE, |node, now| node.deregister(now));
            world.run_for(6 * SECOND);
        },
    },
    Flow {
        page: "handover-refused",
        title: "A move to an agent that the mobile node does not license",
        about: "The offer is refused, no key leaves, and the tunnel goes on, read by nobody. Home asks again from time to \
                time, for the mobile node's configuration may change.",
        policies: || Policies {
            licensed: [vec![0], vec![0, 1]],
            ..of_two(Handover::Push)
        },
        before: at_a,
        play: |world| {
            world.move_to(1);
            world.run_for(6 * SECOND);
        },
    },
];

/// Policies for two of the agents.
fn of_two(handover: Handover) -> Policies {
    Policies {
        licensed: [vec![0, 1], vec![0, 1]],
        ..Policies::new(handover)
    }
}

fn at_a(world: &mut World) {
    world.set_link(0, true);
    world.run_for(20 * SECOND);
}

impl Flow {
    fn world(&self) -> World {
        let mut world = World::new((self.policies)(), 7);
        (self.before)(&mut world);
        world.story.clear();
        (self.play)(&mut world);
        world
    }

    fn draw(&self, world: &World) -> String {
        let mut page = format!(
            "{}# {}\n\n{}\n\n```mermaid\nsequenceDiagram\n",
            pages::HEAD,
            self.title,
            self.about
        );
        let parties = &PARTIES[..AGENT + world.policies.licensed[HOME].len()];
        for party in parties {
            let _ = writeln!(page, "    participant {party}");
        }
        let mut last = world.story.first().map(|(at, ..)| *at);
        for (at, who, message) in &world.story {
            let Some(line) = line(parties, *who, message) else {
                continue;
            };
            let pause = last.map_or(Duration::ZERO, |last| at.since(last));
            if pause >= PAUSE {
                let last = parties.last().unwrap_or(&"home");
                let _ = writeln!(page, "    Note over mobile,{last}: {pause:.1?} later");
            }
            last = Some(*at);
            let _ = writeln!(page, "    {line}");
        }
        page.push_str("```\n");
        page
    }
}

/// Returns the line for a message, or `None` if it concerns neither keys nor registrations.
fn line(parties: &[&str], who: usize, message: &Message) -> Option<String> {
    let here = parties.get(who)?;
    Some(match message {
        Message::Ike {
            to,
            exchange,
            response,
        } => {
            let kind = if *response { "response" } else { "request" };
            format!("{here}->>{}: {exchange} {kind}", parties.get(*to)?)
        }
        Message::Registration { to, reply } => {
            let kind = if *reply { "Reply" } else { "Request" };
            format!("{here}->>{}: Registration {kind}", parties.get(*to)?)
        }
        Message::Told(event) => format!("Note over {here}: {}", told(event)?),
    })
}

fn told(event: &Event) -> Option<String> {
    Some(match event {
        Event::ChildUp { child, .. } => match child {
            Some(child) => format!("{child} is up"),
            None => "the first child is up".to_owned(),
        },
        Event::ChildRekeyed { child, .. } => format!(
            "{} has new keys",
            child.as_deref().unwrap_or("the first child")
        ),
        Event::SealedFor {
            node: Some(node), ..
        } => format!("seals for {node}"),
        Event::SealedFor { node: None, .. } => "seals for no agent".to_owned(),
        Event::GrantHeld(_) => "holds keys".to_owned(),
        Event::GrantDropped { .. } => "has forgotten keys".to_owned(),
        Event::Refused { why, .. } if why.to_string().contains("offer") => {
            "refuses the offer".to_owned()
        }
        Event::MobileIp(Told::HomeAgent(HomeEvent::Bound { .. })) => {
            "the mobile node is bound".to_owned()
        }
        Event::MobileIp(Told::MobileNode(MobileEvent::Registered(_))) => "is registered".to_owned(),
        _ => return None,
    })
}

#[test]
fn every_hand_over_is_drawn_as_it_happens() {
    for flow in FLOWS {
        pages::check(
            &format!("flows/{}.md", flow.page),
            &flow.draw(&flow.world()),
        );
    }
}

/// Negative control: a missing message changes the page.
#[test]
fn a_hand_over_with_a_message_less_is_another_page() {
    let flow = &FLOWS[1];
    let mut world = flow.world();
    let page = flow.draw(&world);
    let is_ike = |(_, _, message): &(_, _, Message)| matches!(message, Message::Ike { .. });
    let at = world.story.iter().position(is_ike).unwrap();
    world.story.remove(at);
    assert_ne!(flow.draw(&world), page);
}

/// Between the mobile node's registration request and the reply, neither the mobile node nor the
/// new agent sends an IKE message, and only home's IKE messages reach them.
#[test]
fn no_hand_over_adds_a_message_to_a_registration() {
    for (handover, most) in [(Handover::Push, 0), (Handover::Pkd, 0)] {
        let mut world = World::new(Policies::new(handover), 7);
        at_a(&mut world);
        world.story.clear();
        world.move_to(1);
        world.run_for(6 * SECOND);
        let is_request =
            |message: &Message| matches!(message, Message::Registration { reply: false, .. });
        let begun = world
            .story
            .iter()
            .position(|(_, who, message)| *who == MOBILE && is_request(message));
        let is_over = |message: &Message| {
            matches!(
                message,
                Message::Told(Event::MobileIp(Told::MobileNode(MobileEvent::Registered(
                    _
                ))))
            )
        };
        let over = world
            .story
            .iter()
            .position(|(_, who, message)| *who == MOBILE && is_over(message));
        let between = &world.story[begun.unwrap()..over.unwrap()];
        let mobile_or_new = |who: usize| [MOBILE, AGENT + 1].contains(&who);
        let of_ike = between.iter().filter(|(_, who, message)| {
            matches!(message, Message::Ike { to, .. } if mobile_or_new(*who) || mobile_or_new(*to) && *who != HOME)
        });
        assert_eq!(of_ike.count(), most, "{handover:?} among {NAMES:?}");
    }
}
