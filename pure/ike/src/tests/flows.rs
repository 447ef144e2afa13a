//! `docs/flows/`: a sequence diagram for each exchange, recorded from two engines.

use super::addresses::{borrower, lender, pool_of};
use super::attempts;
use super::certificates::{self, TODAY};
use super::distribute::{gateway_of_node, grant, node};
use super::mobike;
use super::pair::{Host, LEFT, Pair, Side};
use super::ping;
use super::ppk;
use super::reauth::reauthenticate;
use super::redirect::{LISTED, send_away, sending, served};
use super::rekey::{rekey_child, rekey_ike};
use super::skid;
use super::skid_pfs;
use super::slot;
use super::tcp::{broken, fallen};
use super::ticket;
use super::trace::{Step, What};
use super::transport;
use super::zones::zoned;
use super::*;
use crate::Engine;
use crypto::UnixTime;
use model::{CsaId, Group, IkeSaId, Instant};
use std::fmt::Write;

pub(crate) struct Flow {
    /// Name of the page.
    page: &'static str,
    title: &'static str,
    /// What the page shows, in prose.
    about: &'static str,
    /// Runs the exchange.
    pub(crate) play: fn() -> Pair,
}

/// All pages, in the order of the index.
pub(crate) const FLOWS: &[Flow] = &[
    Flow {
        page: "tunnel",
        title: "A plain tunnel",
        about: "IKE_SA_INIT and IKE_AUTH (RFC 7296 section 1.2) with a pre-shared key. Both ends \
                move to port 4500 after the first exchange. Keys of children exist only once the \
                peer's AUTH verified, which the responder's does first.",
        play: || connected(mobile(), gateway()),
    },
    Flow {
        page: "zones",
        title: "A tunnel in zones",
        about: "The same with ZONE_MAP on both sides (DESIGN section 5): the request offers zones \
                and licences, the answer is what both policies allow. Without the vendor ID of \
                both ends it is not sent.",
        play: || {
            let (left, right) = zoned(Stance::Accept, Stance::Accept);
            connected(left, right)
        },
    },
    Flow {
        page: "addresses",
        title: "Addresses out of a pool",
        about: "The initiator asks for addresses inside (CFG_REQUEST, RFC 7296 section 2.19) and \
                offers to send from any. The responder lends its identity the addresses it had \
                before, or new ones, and narrows the tunnel to them. The lease is told to who \
                remembers it before the answer is sent.",
        play: || connected(borrower(), lender(&["10.9.0.0/24", "fd00:9::/64"])),
    },
    Flow {
        page: "addresses-exhausted",
        title: "No address is left",
        about: "Both ends proved who they are, so the refusal is a protected one with a reason \
                (RFC 7296 section 3.15.4), and no child is made. An IKE SA without a tunnel is of \
                no use to a VPN peer, so the initiator deletes it.",
        play: || {
            let reserved = vec!["10.9.0.1".parse().unwrap()];
            let mut right = lender(&["10.9.0.1/32"]);
            pool_of(&mut right).reserved = reserved;
            connected(borrower(), right)
        },
    },
    Flow {
        page: "cookie",
        title: "A responder under load",
        about: "The responder wants to see that the initiator receives what is sent to its \
                address (RFC 7296 section 2.6): the same request again, with a cookie in front.",
        play: || {
            let mut right = gateway();
            right.limits.half_open_without_cookie = 0;
            connected(mobile(), right)
        },
    },
    Flow {
        page: "wrong-group",
        title: "The wrong group was guessed",
        about: "The first message has the public value of one group only. Who wants another says \
                which, and keeps nothing; the whole offer is made again, so that whoever forges \
                the answer cannot choose the group (RFC 7296 sections 1.2 and 2.7).",
        play: || {
            let mut right = gateway();
            right.peers[0].groups = vec![Group::P256];
            connected(mobile(), right)
        },
    },
    Flow {
        page: "retransmission",
        title: "A request is lost, then an answer",
        about: "Only who asks repeats, the same octets after growing pauses (RFC 7296 section \
                2.1). The responder recognises the repeated request and gives the answer it gave \
                before; it opens nothing a second time and its state does not change.",
        play: retransmission,
    },
    Flow {
        page: "wrong-key",
        title: "A wrong pre-shared key",
        about: "The responder tells its own log which it was; the initiator gets the same answer \
                for a wrong key and for an unknown identity. The refused SA keeps its place among \
                the half-open ones, so that failing fast gains a stranger nothing.",
        play: || {
            let mut left = mobile();
            left.peers[0].psk = Some(Secret::new(b"another".to_vec()));
            connected(left, gateway())
        },
    },
    Flow {
        page: "rekey-lacking",
        title: "A renewal that lacks what it needs",
        about: "A peer asks for new keys of the IKE SA and sends no public value. What is answered is \
                \"considered fatal in both peers\" (RFC 7296 section 2.21.3), so both forget the SA.",
        play: || rekey::lacking(true),
    },
    Flow {
        page: "kem",
        title: "ML-KEM beside the group",
        about: "Both ends want a key exchange besides that no quantum computer is known to break. Its \
                public key is too long for IKE_SA_INIT, so it takes place in IKE_INTERMEDIATE (RFC \
                9242), sealed with the keys of the group, and all keys are made anew of it (RFC 9370 \
                section 2.2.2). Both AUTHs cover it.",
        play: kem::story,
    },
    Flow {
        page: "kem-rekey",
        title: "New keys with ML-KEM beside the group",
        about: "The successor of the IKE SA has an additional key exchange of its own: in \
                IKE_FOLLOWUP_KE, after CREATE_CHILD_SA, whose answer names it (RFC 9370 section \
                2.2.4). Only then it takes over.",
        play: kem::renewal,
    },
    Flow {
        page: "kem-child",
        title: "New keys for a child with ML-KEM beside the group",
        about: "The child has additional key exchanges of its own where `pfs` asks for one at all. It is \
                there after the last of them, at the responder when it answers, at the initiator when \
                the answer comes (RFC 9370 section 2.2.4).",
        play: followup::story,
    },
    Flow {
        page: "kem-child-both",
        title: "Both ends ask for new keys of a child with ML-KEM",
        about: "The four nonces decide as in RFC 7296 section 2.8.1, but there is nothing to delete yet: \
                who asked with the lowest one does not go on (RFC 9370 section 2.2.4), and the other \
                end drops what it was asked for.",
        play: followup::both,
    },
    Flow {
        page: "kem-child-late",
        title: "A child that the responder has forgotten",
        about: "The path is broken for longer than the 20 s for which the next key exchange is waited for. \
                STATE_NOT_FOUND is no fatal error: the child that there was goes on, and is to get new \
                keys once more (RFC 9370 section 2.2.4).",
        play: followup::late,
    },
    Flow {
        page: "kem-broken",
        title: "An additional key exchange with a value that is none",
        about: "The initiator's public key has numbers beyond the modulus (FIPS 203 section 7.2). Nobody \
                has proved anything yet, so the responder says no more than that it is wrong, and keeps \
                its place among the half-open ones until it would have expired.",
        play: kem::broken,
    },
    Flow {
        page: "ppk",
        title: "A post-quantum pre-shared key",
        about: "USE_PPK says that there is one, PPK_IDENTITY which (RFC 8784 section 3). AUTH proves \
                it with the identity, and all keys of tunnels come of it. The initiator could do \
                without, so NO_PPK_AUTH has what AUTH would be then.",
        play: || ppk::story(true),
    },
    Flow {
        page: "ppk-unknown",
        title: "A post-quantum pre-shared key that only one end has",
        about: "Nobody requires it. The responder takes NO_PPK_AUTH for the proof and does not say \
                PPK_IDENTITY; both ends tell their owners that the tunnel is as it would be without. \
                With `required` at either end it ends in AUTHENTICATION_FAILED.",
        play: || ppk::story(false),
    },
    Flow {
        page: "certificates",
        title: "Certificates instead of a key",
        about: "Each end says which hashes it verifies signatures with (RFC 7427 section 4), and \
                then which CAs it believes (RFC 7296 section 3.7). CERT holds the sender's own \
                certificate and, if there are any, intermediates; AUTH is a signature, for an \
                end that names no hashes one by ECDSA as in RFC 4754.",
        play: || certified(TODAY),
    },
    Flow {
        page: "fragments",
        title: "Messages in fragments, and one of these is lost",
        about: "With certificates IKE_AUTH is longer than 576 octets, the limit here, so it is sent \
                in fragments (RFC 7383), each sealed on its own; the usual limit is 1280. The whole \
                message is repeated, and what came before is known by its number. The answer comes \
                in fragments as well.",
        play: || {
            let mut pair = fragment::certified();
            pair.initiate(Side::Left);
            pair.deliver_next();
            pair.deliver_next();
            pair.deliver_next();
            pair.lose();
            pair.run_for(Duration::from_secs(5));
            pair
        },
    },
    Flow {
        page: "certificate-refused",
        title: "An expired certificate",
        about: "AUTHENTICATION_FAILED says no more than for a wrong key. The private notify beside \
                it tells a peer of our own kind what is wrong with its certificate, so that both \
                ends can say it to a person; it tells nothing of who is configured.",
        play: || certified(UnixTime(TODAY.0 + 365 * 86_400)),
    },
    Flow {
        page: "zones-required",
        title: "Zones are required, and not agreed",
        about: "The peer is authenticated, so the refusal is a protected one with a reason \
                (RFC 7296 section 1.2: the IKE SA may stand without its child). An IKE SA without \
                a tunnel is of no use to a VPN peer, so the responder deletes it.",
        play: || {
            let (left, right) = zoned(Stance::Refuse, Stance::Require);
            connected(left, right)
        },
    },
    Flow {
        page: "simultaneous",
        title: "Both ends begin at once",
        about: "Two IKE SAs come up, and one stays: not that with the lowest of the four nonces, as \
                where two rekeyings cross (RFC 7296 section 2.8). INITIAL_CONTACT of a peer that \
                began before the other SA was up says nothing.",
        play: || {
            let mut pair = Pair::new(mobile(), gateway());
            pair.initiate(Side::Left);
            pair.initiate(Side::Right);
            pair.settle();
            pair
        },
    },
    Flow {
        page: "refused-beside",
        title: "A gateway gets the key that it lacked",
        about: "The first answer lacks USE_PPK and is not authenticated, so the attempt continues. \
                Its repeated request would get the same answer for as long as the gateway keeps it. \
                Another attempt begins beside it, and gets an answer that fits the changed \
                configuration. The first one ends without a message.",
        play: attempts::mended,
    },
    Flow {
        page: "restart",
        title: "A peer comes back after a crash",
        about: "The new IKE SA says INITIAL_CONTACT. The old one is dropped when, and only when, \
                the new one is authenticated; a Delete would reach nobody who knows it.",
        play: || {
            let (mut pair, _) = up(mobile(), gateway());
            pair.restart(Side::Left, Host::seeded(mobile(), 9, 1));
            pair.run_for(Duration::from_secs(60));
            pair.connect();
            pair
        },
    },
    Flow {
        page: "crash",
        title: "A gateway proves that it was started again",
        about: "An ESP packet of the initiator has an SPI that the gateway does not know any more. \
                It says so (INVALID_SPI), which proves nothing, and the initiator asks. The answer \
                has the token (RFC 6290) that the gateway gave in IKE_AUTH. Another IKE SA begins \
                at once, and replaces the lost one when it is authenticated.",
        play: crash::story,
    },
    Flow {
        page: "liveness",
        title: "Silence",
        about: "Nothing was heard for `liveness`: an empty INFORMATIONAL asks (RFC 7296 section \
                2.4). Genuine ESP makes the question unnecessary. The second time nobody answers.",
        play: liveness,
    },
    Flow {
        page: "reauth",
        title: "Both ends prove anew who they are",
        about: "A new IKE SA is made beside the old one (RFC 7296 section 2.8.3), without \
                INITIAL_CONTACT, and its child takes the place of the old one's. The initiator \
                deletes the old SA when nothing is under way on it, and receives on its child for a \
                little longer.",
        play: || {
            let mut left = mobile();
            left.peers[0].lifetimes.reauth = Duration::from_secs(100);
            let (mut pair, _) = up(left, gateway());
            pair.run_for(Duration::from_secs(150));
            pair
        },
    },
    Flow {
        page: "reauth-refused",
        title: "An authentication that cannot be repeated",
        about: "The responder has another key by now. All stays as it is, and it is tried again, \
                until the time that an authentication counts is over by a quarter.",
        play: || {
            let mut pair = story();
            let another = Secret::new(b"another".to_vec());
            pair.right.engine.config.peers[0].psk = Some(another);
            reauthenticate(&mut pair);
            pair.settle();
            pair
        },
    },
    Flow {
        page: "clone",
        title: "A soft hand-over",
        about: "Who began has another way, and takes it without a pause: it clones the IKE SA (RFC 7791), \
                moves the clone there (RFC 4555), and makes the same tunnel in it. Packets go by the \
                old path until the new one is known to work. Then the old IKE SA leaves.",
        play: clone::story,
    },
    Flow {
        page: "clone-refused",
        title: "A soft hand-over to where the peer does not follow",
        about: "The clone is there, and the peer does not want it at the other address. So it is deleted, \
                and the IKE SA that it came of goes on as if nothing had been: its tunnel was not \
                touched.",
        play: clone::in_vain,
    },
    Flow {
        page: "redirect",
        title: "A gateway sends a client to another one",
        about: "The client says that it goes elsewhere, and is told where in the answer to its first \
                message (RFC 5685 section 3); its nonce in it shows that it is an answer. Here the \
                other gateway is the same host at another address.",
        play: || {
            let mut pair = sending(LISTED, true);
            pair.connect();
            pair
        },
    },
    Flow {
        page: "redirect-auth",
        title: "A gateway sends a client away that has proved who it is",
        about: "Both ends have proved who they are, no child is made, and both delete the IKE SA (RFC \
                5685 section 6).",
        play: || {
            let mut pair = sending(LISTED, false);
            pair.connect();
            pair
        },
    },
    Flow {
        page: "ping",
        title: "The counters of pings",
        about: "Pings and their answers are dummy packets of a child SA, so that they are no part of \
                this page. Before the first and after the last, an end asks for the counters of the \
                other. Their differences tell where pings were lost. Here four have arrived, and \
                none was answered.",
        play: ping::unanswered,
    },
    Flow {
        page: "resume",
        title: "A lost session is resumed by a ticket",
        about: "Both ends have lost the IKE SA without a Delete. The initiator presents its ticket \
                in place of a key exchange (RFC 5723). The responder takes the session out of its \
                store once IKE_AUTH has proved that the initiator knows its keys, and gives \
                another ticket.",
        play: || ticket::story(true),
    },
    Flow {
        page: "resume-skid3",
        title: "A lost session is resumed by SKID3",
        about: "SKID_RESUME (paper 004, section V): the first two messages have all that IKE_SA_INIT \
                and IKE_AUTH agree on, sealed with keys of the entry. The initiator is up after one \
                round trip. Its next request proves that it is there now; before that, nothing \
                happens at the responder.",
        play: skid::story,
    },
    Flow {
        page: "resume-skid3-kem",
        title: "A lost session is resumed by SKID3, and gets new keys with ML-KEM",
        about: "With a key exchange in SKID3 and a KEM at both ends, the initiator rekeys the IKE \
                SA as soon as it is up at both ends, and the child after that. Packets pass from \
                the first answer on.",
        play: skid_pfs::story,
    },
    Flow {
        page: "resume-refused",
        title: "A ticket is refused",
        about: "The responder has forgotten the session. Its refusal is not authenticated, so a \
                full exchange begins beside the attempt, at once.",
        play: || ticket::story(false),
    },
    Flow {
        page: "redirect-up",
        title: "A gateway sends a client away whose tunnel is up",
        about: "The client leaves when it has a tunnel to the other gateway (RFC 5685 section 5).",
        play: || {
            let mut pair = served(LISTED);
            pair.begin_story();
            send_away(&mut pair);
            pair.run_for(Duration::from_secs(60));
            pair
        },
    },
    Flow {
        page: "tcp",
        title: "No UDP comes through",
        about: "Nobody answers by UDP, so the client begins again in a stream of TCP (RFC 9329 section \
                5.1), with another SPI. What is in a stream is not sent again.",
        play: || fallen(20),
    },
    Flow {
        page: "tcp-lost",
        title: "The connection of a tunnel is lost",
        about: "Who began makes another one at once and sends a message in it; from then on the other \
                end answers there (RFC 9329 section 6.1). The IKE SA and its child stay.",
        play: broken,
    },
    Flow {
        page: "delete",
        title: "An orderly end",
        about: "The children are down before the Delete leaves (RFC 7296 section 1.4.1). Who \
                answered it keeps the answer for a while, in case it is lost.",
        play: || {
            let (mut pair, id) = up(mobile(), gateway());
            pair.with(Side::Left, |engine, now| engine.close(id, now));
            pair.settle();
            pair.run_for(Duration::from_secs(30));
            pair
        },
    },
    Flow {
        page: "delete-both",
        title: "Both ends close at once",
        about: "Each Delete is answered although its receiver is closing too (RFC 7296 section \
                2.25.2).",
        play: || {
            let (mut pair, _) = up(mobile(), gateway());
            pair.with(Side::Left, Engine::shutdown);
            pair.with(Side::Right, Engine::shutdown);
            pair.settle();
            pair
        },
    },
    Flow {
        page: "key-distribute",
        title: "A licensed node gets keys, and loses them",
        about: "The IKE SA between gateway and licensed node has no child (RFC 6023). \
                KEY_DISTRIBUTE carries the grant and a SECRET for each licensed zone and \
                direction; the payload zone's key is in none of them. REVOKE is housekeeping: the \
                gateway waits for no acknowledgement (DESIGN section 4, invariant 5).",
        play: || {
            let mut pair = Pair::new(gateway_of_node(), node());
            let id = pair.connect();
            pair.with(Side::Left, |engine, now| {
                engine.distribute(id, grant(1), now)
            });
            pair.settle();
            pair.with(Side::Left, |engine, now| engine.revoke(id, CsaId(77), now));
            pair.settle();
            pair
        },
    },
    Flow {
        page: "slot",
        title: "A licensed node where the tunnel is to pass",
        about: "A slot is a child for the same traffic that licenses one node more. The gateway asks for it \
                with OFFER, which names the node; the mobile node accepts, and only then a key of it can leave \
                (DESIGN section 5). One more request says that the answer has come, for the mobile node may be \
                the first to send on it.",
        play: || {
            let mut pair = slot::connected(&["a.example.net"], &["a.example.net"]);
            pair.begin_story();
            slot::open(&mut pair, "a.example.net");
            pair
        },
    },
    Flow {
        page: "slot-refused",
        title: "A licensed node that the mobile node does not license",
        about: "The mobile node's policy has no licence for the node that is offered: no child is made, no key \
                leaves, and all else stays as it is (DESIGN section 4, invariant 4).",
        play: || {
            let mut pair = slot::connected(&[], &["a.example.net"]);
            pair.begin_story();
            slot::open(&mut pair, "a.example.net");
            pair
        },
    },
    Flow {
        page: "children",
        title: "A tunnel beside the first",
        about: "Who began asks for the other children of its configuration as soon as the IKE SA is up \
                (RFC 7296 section 1.3.1), with a key exchange of its own. One of them is deleted, and \
                the other goes on.",
        play: || {
            let mut pair = children::connected();
            children::close(&mut pair, Side::Right);
            pair.settle();
            pair
        },
    },
    Flow {
        page: "rekey-child",
        title: "New keys for a tunnel",
        about: "CREATE_CHILD_SA with REKEY_SA (RFC 7296 section 1.3.3), new nonces and a key \
                exchange. Both ends accept packets on both children; after a time of draining, who \
                asked deletes the old one.",
        play: || {
            let mut pair = story();
            rekey_child(&mut pair, Side::Left);
            pair.run_for(Duration::from_secs(60));
            pair
        },
    },
    Flow {
        page: "rekey-ike",
        title: "New keys for an IKE SA",
        about: "The successor has SPIs of its own (RFC 7296 section 1.3.2) and takes over name and \
                children. Who asked deletes what is left of the old one.",
        play: || {
            let mut pair = story();
            rekey_ike(&mut pair, Side::Left);
            pair.run_for(Duration::from_secs(60));
            pair
        },
    },
    Flow {
        page: "rekey-child-both",
        title: "Both ends want new keys for a tunnel at once",
        about: "Two successors come about. That with the lowest of the four nonces is deleted by \
                who asked for it (RFC 7296 section 2.8.1); it never carried anything.",
        play: || {
            let mut pair = story();
            rekey_child(&mut pair, Side::Left);
            rekey_child(&mut pair, Side::Right);
            pair.run_for(Duration::from_secs(60));
            pair
        },
    },
    Flow {
        page: "rekey-ike-both",
        title: "Both ends want new keys for an IKE SA at once",
        about: "The same for the IKE SA (RFC 7296 section 2.8.2): each end knows which successor \
                stays when it has seen all four nonces, and hands over only then.",
        play: || {
            let mut pair = story();
            rekey_ike(&mut pair, Side::Left);
            rekey_ike(&mut pair, Side::Right);
            pair.run_for(Duration::from_secs(120));
            pair
        },
    },
    Flow {
        page: "rekey-ike-unnoticed",
        title: "Both ends want new keys, and one does not notice",
        about: "The left end's request is lost. The right end has its own answered and deletes the \
                old IKE SA; the left one then takes over the right one's successor.",
        play: || {
            let mut pair = story();
            rekey_ike(&mut pair, Side::Left);
            pair.intercept();
            pair.trace.lose(1);
            rekey_ike(&mut pair, Side::Right);
            pair.run_for(Duration::from_secs(120));
            pair
        },
    },
    Flow {
        page: "rekey-refused",
        title: "The peer makes no new keys",
        about: "Its policy has changed since. The old keys are used, and asked to be replaced, until \
                their lifetime is over.",
        play: || {
            let mut left = mobile();
            left.peers[0].suites = vec![Suite::Aes128Gcm16];
            left.peers[0].lifetimes.child = Duration::from_secs(10);
            left.timers.retry = Duration::from_secs(20);
            let (mut pair, _) = up(left, gateway());
            pair.right.engine.config.peers[0].suites = vec![Suite::Aes256Gcm16];
            pair.run_for(Duration::from_secs(120));
            pair
        },
    },
    Flow {
        page: "move",
        title: "A tunnel moves",
        about: "The mobile node has another address (RFC 4555 section 3.5), sends from there at once \
                and says so. The gateway answers and sends what the tunnel carries there only \
                when its cookie was brought back from there (section 3.7).",
        play: || {
            let (left, right) = mobike::roaming();
            let (mut pair, _) = up(left, right);
            mobike::move_to(&mut pair, mobike::to(mobike::CELL));
            pair.settle();
            pair
        },
    },
    Flow {
        page: "live-path",
        title: "A further path",
        about: "Both ends have `paths = 2`, and the mobile node has a second address. Each end \
                checks the path by a request on it alone, before it sends packets there (DESIGN \
                section 6): the mobile node before it asks for the child of this path, the gateway \
                after that. Then the path is removed.",
        play: || {
            let (mut left, mut right) = mobike::roaming();
            left.peers[0].features.paths = 2;
            right.peers[0].features.paths = 2;
            let (mut pair, _) = up(left, right);
            let (sa, path) = (pair.left.ike(), mobike::to(mobike::CELL));
            pair.with(Side::Left, |engine, now| engine.add_path(sa, path, now));
            pair.settle();
            pair.with(Side::Left, |engine, now| engine.remove_path(sa, 2, now));
            pair.settle();
            pair
        },
    },
    Flow {
        page: "move-silent",
        title: "A path dies without notice",
        about: "The mobile node asks for a sign of life. After 1.5 s it asks on other paths \
                as well (RFC 4555 section 3.10): the same request, which moves nothing. Where an \
                answer comes from the tunnel goes.",
        play: || {
            let mut pair = mobike::silent();
            let sa = pair.left.engine.sas().next().expect("it is up").id;
            let there = mobike::to(mobike::CELL);
            pair.with(Side::Left, |engine, now| engine.probe(sa, there, now));
            pair.settle();
            mobike::move_to(&mut pair, there);
            pair.settle();
            pair
        },
    },
    Flow {
        page: "move-transport",
        title: "Transport mode moves",
        about: "The selectors of a tunnel in transport mode are the outer addresses, and both ends \
                list which ones they may be (MOBIKE-X). The mobile node names its old and its new \
                address and that of the gateway, so a NAT shows. It moves its end when the gateway \
                has agreed, and the gateway moves when its cookie was brought back.",
        play: || {
            let (left, right) = transport::walking();
            let (mut pair, _) = up(left, right);
            mobike::move_to(&mut pair, mobike::to(mobike::CELL));
            pair.settle();
            pair
        },
    },
    Flow {
        page: "move-transport-refused",
        title: "Transport mode must not move there",
        about: "The gateway does not list the new address. Nothing moves, and the mobile node \
                returns.",
        play: || {
            let (left, right) = transport::without_train();
            let (mut pair, _) = up(left, right);
            mobike::move_to(&mut pair, mobike::to(mobike::TRAIN));
            pair.settle();
            mobike::move_to(&mut pair, mobike::to(LEFT));
            pair.settle();
            pair
        },
    },
    Flow {
        page: "key-refused",
        title: "A grant is refused",
        about: "Keys are taken from the configured gateway only. Here the node believes the sender \
                to be a licensed node itself, and says no.",
        play: || {
            let confused = host("node", peer("gateway", PeerRole::Licensed));
            let (mut pair, id) = up(gateway_of_node(), confused);
            pair.with(Side::Left, |engine, now| {
                engine.distribute(id, grant(1), now)
            });
            pair.settle();
            pair
        },
    },
    Flow {
        page: "unreadable",
        title: "A request that cannot be read",
        about: "It is genuine, so its sender is broken, and both ends give the IKE SA up: \
                INVALID_SYNTAX is fatal in both (RFC 7296 section 2.21.3). Here it is a \
                KEY_DISTRIBUTE without keys. What is not genuine is dropped and counted, and \
                never answered.",
        play: || {
            let (mut pair, id) = up(gateway_of_node(), node());
            let mut empty = grant(1);
            empty.from_gateway.zones.clear();
            empty.to_gateway.zones.clear();
            pair.with(Side::Left, |engine, now| engine.distribute(id, empty, now));
            pair.settle();
            pair
        },
    },
];

/// Returns an established tunnel.
fn story() -> Pair {
    up(mobile(), gateway()).0
}

fn connected(left: Config, right: Config) -> Pair {
    let mut pair = Pair::new(left, right);
    pair.connect();
    pair
}

fn certified(today: UnixTime) -> Pair {
    let (left, right) = certificates::ends();
    let mut pair = certificates::pair(left, right, today, 1);
    pair.connect();
    pair
}

/// Returns two ends with an IKE SA, and starts the story.
fn up(left: Config, right: Config) -> (Pair, IkeSaId) {
    let mut pair = Pair::new(left, right);
    let id = pair.connect();
    pair.begin_story();
    (pair, id)
}

fn retransmission() -> Pair {
    let mut pair = Pair::new(mobile(), gateway());
    pair.initiate(Side::Left);
    pair.lose();
    pair.run_for(Duration::from_secs(1));
    pair.deliver_next();
    pair.lose();
    pair.run_for(Duration::from_secs(2));
    pair.settle();
    pair
}

fn liveness() -> Pair {
    let mut left = mobile();
    left.peers[0].liveness = Duration::from_secs(30);
    let (mut pair, _) = up(left, gateway());
    pair.run_for(Duration::from_secs(31));
    pair.hop.lost = 1000;
    pair.run_for(Duration::from_secs(60));
    pair
}

#[test]
fn every_flow_is_drawn_as_it_happens() {
    for flow in FLOWS {
        let pair = (flow.play)();
        let page = format!("flows/{}.md", flow.page);
        pages::check(&page, &flow.draw(&pair));
    }
}

#[test]
fn the_index_names_every_page_and_no_other() {
    let mut index = format!(
        "{}# Flows\n\nWhat two engines say to each other, exchange by exchange: every message with \
         the payloads seen in it, and what each end then is and tells its owner. `-x` is a message \
         that was lost. The states are in [ike-sa.md](../states/ike-sa.md).\n\n",
        pages::HEAD
    );
    for flow in FLOWS {
        let _ = writeln!(index, "* [{}]({}.md)", flow.title, flow.page);
    }
    // Flows among several hosts are drawn in pure/node/tests/roaming/flows.rs.
    let handovers = pages::list("flows");
    let handovers = handovers
        .iter()
        .filter(|page| page.starts_with("handover-"));
    index.push_str("\nWhile a mobile node moves among licensed agents:\n\n");
    for page in handovers.clone() {
        let title = pages::read(&format!("flows/{page}"));
        let title = title.lines().find_map(|line| line.strip_prefix("# "));
        let _ = writeln!(index, "* [{}]({page})", title.expect("it has one"));
    }
    pages::check("flows/README.md", &index);
    let flows = FLOWS.iter().map(|flow| format!("{}.md", flow.page));
    let mut expected: Vec<_> = flows.chain(handovers.cloned()).collect();
    expected.push("README.md".to_owned());
    expected.sort();
    assert_eq!(
        pages::list("flows"),
        expected,
        "a page of a flow that is gone"
    );
}

/// Negative control: a page with a message missing or added is another page.
#[test]
fn a_flow_with_a_message_less_is_another_page() {
    let flow = &FLOWS[0];
    let mut pair = (flow.play)();
    let page = flow.draw(&pair);
    let sent = |step: &Step| matches!(step.what, What::Sent { .. });
    let last = pair.trace.steps.iter().rposition(sent).unwrap();
    pair.trace.steps.remove(last);
    assert_ne!(flow.draw(&pair), page);
}

/// The shortest pause that a page mentions: longer than a round trip.
const PAUSE: Duration = Duration::from_millis(100);

impl Flow {
    fn draw(&self, pair: &Pair) -> String {
        let names = [&pair.left, &pair.right].map(|host| host.name());
        let mut page = format!("{}# {}\n\n{}\n\n", pages::HEAD, self.title, self.about);
        page.push_str("```mermaid\nsequenceDiagram\n");
        for name in &names {
            let _ = writeln!(page, "    participant {name}");
        }
        if pair.trace.begun > Instant::ZERO {
            let _ = writeln!(
                page,
                "    Note over {},{}: an IKE SA is up",
                names[0], names[1]
            );
        }
        let mut last = pair.trace.begun;
        for group in pair.trace.steps.chunk_by(together) {
            let pause = group[0].at.since(last);
            if pause > PAUSE {
                let time = pause.as_secs_f64();
                let _ = writeln!(
                    page,
                    "    Note over {},{}: {time:.1} s pass",
                    names[0], names[1]
                );
            }
            last = group[0].at;
            let _ = writeln!(page, "    {}", line(group, &names, pair));
        }
        page.push_str("```\n");
        page
    }
}

/// Returns true if two steps share a note: state changes and events at one end at one moment. Each
/// message has a line of its own.
fn together(a: &Step, b: &Step) -> bool {
    let message = |step: &Step| matches!(step.what, What::Sent { .. });
    a.at == b.at && a.side == b.side && !message(a) && !message(b)
}

fn line(group: &[Step], names: &[String; 2], pair: &Pair) -> String {
    let side = group[0].side;
    let (here, there) = (&names[side as usize], &names[side.other() as usize]);
    if let What::Sent { text, lost } = &group[0].what {
        let arrow = if *lost { "-x" } else { "->>" };
        return format!("{here}{arrow}{there}: {text}");
    }
    let several =
        pair.trace.steps.iter().any(|step| {
            step.side == side && matches!(step.what, What::State { sa, .. } if sa.0 > 1)
        });
    let words: Vec<_> = group.iter().map(|step| word(&step.what, several)).collect();
    let place = if side == Side::Left { "left" } else { "right" };
    format!("Note {place} of {here}: {}", words.join("<br/>"))
}

/// Returns the text of a step. An IKE SA is named only at an end with several of them.
fn word(what: &What, several: bool) -> String {
    match what {
        What::Told(text) | What::Sent { text, .. } => text.clone(),
        What::State { sa, from, to } => {
            let name = if several {
                format!("SA {}: ", sa.0)
            } else {
                String::new()
            };
            match (from, to) {
                (None, Some(to)) => format!("{name}{to}"),
                (Some(from), to) => format!("{name}{from} → {}", to.unwrap_or("gone")),
                (None, None) => name,
            }
        }
    }
}
