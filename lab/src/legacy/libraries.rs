//! RustCrypto's block ciphers and hash functions, combined as in RFC 2451 and RFC 2104.

use super::{Algorithms, Encryption, Integrity, Make};
use aes::Aes128;
use cbc::cipher::consts::{U12, U16};
use cbc::cipher::{
    Array, Block, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt,
    BlockSizeUser, InnerIvInit, KeyInit,
};
use crypto::BadIcv;
use des::{Des, TdesEde3};
use esp::Foreign;
use hmac::{Hmac, Mac};
use md5::Md5;
use model::Frame;
use rc5::RC5;
use sha1::Sha1;

type Rc5 = RC5<u32, U12, U16>;

/// Octets of the ICV.
const ICV_LEN: u8 = 12;

/// A cipher in CBC mode, then an HMAC over the ciphertext. Both keys are expanded.
struct Legacy<C, M> {
    cipher: C,
    mac: M,
}

pub(super) fn make(algorithms: Algorithms) -> Make {
    use Encryption as E;
    use Integrity as I;
    match (algorithms.encryption, algorithms.integrity) {
        (E::Des, I::Md5) => boxed::<Des, Hmac<Md5>>,
        (E::Des, I::Sha1) => boxed::<Des, Hmac<Sha1>>,
        (E::TripleDes, I::Md5) => boxed::<TdesEde3, Hmac<Md5>>,
        (E::TripleDes, I::Sha1) => boxed::<TdesEde3, Hmac<Sha1>>,
        (E::Rijndael, I::Md5) => boxed::<Aes128, Hmac<Md5>>,
        (E::Rijndael, I::Sha1) => boxed::<Aes128, Hmac<Sha1>>,
        (E::Rc5, I::Md5) => boxed::<Rc5, Hmac<Md5>>,
        (E::Rc5, I::Sha1) => boxed::<Rc5, Hmac<Sha1>>,
    }
}

fn boxed<C, M>(key: u8) -> Box<dyn Foreign>
where
    C: BlockCipherEncrypt + BlockCipherDecrypt + KeyInit + Send + 'static,
    M: Mac + KeyInit + Clone + Send + 'static,
{
    Box::new(Legacy {
        cipher: C::new(&Array::from_fn(|place| key << 4 ^ place as u8)),
        mac: <M as KeyInit>::new(&Array::from_fn(|place| !key ^ place as u8)),
    })
}

impl<C: BlockCipherEncrypt, M: Mac + Clone> Legacy<C, M> {
    /// Returns the IV as `crypto` makes it for AES-CBC: the sequence number, encrypted.
    fn iv(&self, seq: u32) -> Block<C> {
        let mut iv = Block::<C>::default();
        let number = iv.len() - 4;
        iv[number..].copy_from_slice(&seq.to_be_bytes());
        self.cipher.encrypt_block(&mut iv);
        iv
    }

    fn mac(&self, parts: [&[u8]; 3]) -> M {
        let mut mac = self.mac.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac
    }
}

impl<C, M> Foreign for Legacy<C, M>
where
    C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser + Send,
    M: Mac + Clone + Send,
{
    fn frame(&self) -> Frame {
        let block_len = C::block_size() as u8;
        Frame {
            iv_len: block_len,
            block_len,
            icv_len: ICV_LEN,
        }
    }

    fn seal(&self, seq: u32, aad: &[u8], iv: &mut [u8], text: &mut [u8], icv: &mut [u8]) {
        let fresh = self.iv(seq);
        iv.copy_from_slice(&fresh);
        let (blocks, _) = Block::<C>::slice_as_chunks_mut(text);
        cbc::Encryptor::inner_iv_init(&self.cipher, &fresh).encrypt_blocks(blocks);
        let tag = self.mac([aad, iv, text]).finalize().into_bytes();
        icv.copy_from_slice(&tag[..usize::from(ICV_LEN)]);
    }

    fn open(
        &self,
        _seq: u32,
        aad: &[u8],
        iv: &[u8],
        text: &mut [u8],
        icv: &[u8],
    ) -> Result<(), BadIcv> {
        // `verify_truncated_left` would accept a prefix of the ICV.
        if icv.len() != usize::from(ICV_LEN) {
            return Err(BadIcv);
        }
        let mac = self.mac([aad, iv, text]);
        mac.verify_truncated_left(icv).map_err(|_| BadIcv)?;
        let iv = <&Block<C>>::try_from(iv).map_err(|_| BadIcv)?;
        let (blocks, rest) = Block::<C>::slice_as_chunks_mut(text);
        if !rest.is_empty() {
            return Err(BadIcv);
        }
        cbc::Decryptor::inner_iv_init(&self.cipher, iv).decrypt_blocks(blocks);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encrypts a text in CBC mode, and returns it in hexadecimal.
    fn sealed<C: BlockCipherEncrypt + KeyInit>(key: &str, iv: &str, plain: &[u8]) -> String {
        let cipher = C::new_from_slice(&octets(key)).unwrap();
        let (iv, mut text) = (octets(iv), plain.to_vec());
        let iv = <&Block<C>>::try_from(&iv[..]).unwrap();
        let (blocks, _) = Block::<C>::slice_as_chunks_mut(&mut text);
        cbc::Encryptor::inner_iv_init(&cipher, iv).encrypt_blocks(blocks);
        hex(&text)
    }

    fn octets(hex: &str) -> Vec<u8> {
        let octet = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(octet).collect()
    }

    fn hex(octets: &[u8]) -> String {
        octets.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    /// FIPS 81, NIST SP 800-67 (its first block), draft-krovetz-rc6-rc5-vectors and RFC 3602.
    #[test]
    fn the_ciphers_are_those_of_published_vectors() {
        let des = sealed::<Des>(
            "0123456789abcdef",
            "1234567890abcdef",
            b"Now is the time for all ",
        );
        assert_eq!(des, "e5c7cdde872bf27c43e934008c389c0f683788499a7c05f6");
        let key = "0123456789abcdef23456789abcdef01456789abcdef0123";
        let triple = sealed::<TdesEde3>(key, &"00".repeat(8), b"The qufc");
        assert_eq!(triple, "a826fd8ce53b855f");
        let key = "000102030405060708090a0b0c0d0e0f";
        let rc5 = sealed::<Rc5>(key, &"00".repeat(8), &[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(rc5, "c8d3b3c486700cfa");
        let aes = sealed::<Aes128>(
            "06a9214036b8a15b512e03d534120006",
            "3dafba429d9eb430b422da802c9fac41",
            b"Single block msg",
        );
        assert_eq!(aes, "e353779c1079aeb82708942dbe77181a");
    }

    /// RFC 2202, the first case of each.
    #[test]
    fn the_hmacs_are_those_of_published_vectors() {
        let md5 = <Hmac<Md5> as KeyInit>::new_from_slice(&[0x0b; 16]).unwrap();
        let tag = md5.chain_update(b"Hi There").finalize().into_bytes();
        assert_eq!(hex(&tag), "9294727a3638bb1c13f48ef8158bfc9d");
        let sha1 = <Hmac<Sha1> as KeyInit>::new_from_slice(&[0x0b; 20]).unwrap();
        let tag = sha1.chain_update(b"Hi There").finalize().into_bytes();
        assert_eq!(hex(&tag), "b617318655057264e28bc0b6fb378c8ef146be00");
    }

    #[test]
    fn what_is_sealed_is_opened_by_its_key_alone_and_as_it_was() {
        for encryption in Encryption::ALL {
            for integrity in Integrity::ALL {
                opens(encryption.with(integrity));
            }
        }
    }

    fn opens(algorithms: Algorithms) {
        let make = make(algorithms);
        let (ours, other) = (make(1), make(2));
        let frame = ours.frame();
        let (mut text, mut iv) = (vec![5; 48], vec![0; frame.iv_len.into()]);
        let mut icv = [0; 12];
        ours.seal(7, b"aad", &mut iv, &mut text, &mut icv);
        let sealed = text.clone();
        assert_ne!(text, [5; 48], "{algorithms:?}");
        let refused = other.open(7, b"aad", &iv, &mut text, &icv);
        assert_eq!((refused, &text), (Err(BadIcv), &sealed));
        let refused = ours.open(7, b"add", &iv, &mut text, &icv);
        assert_eq!((refused, &text), (Err(BadIcv), &sealed));
        for short in [0, 11] {
            let refused = ours.open(7, b"aad", &iv, &mut text, &icv[..short]);
            assert_eq!((refused, &text), (Err(BadIcv), &sealed), "{short}");
        }
        assert_eq!(ours.open(7, b"aad", &iv, &mut text, &icv), Ok(()));
        assert_eq!(text, [5; 48], "{algorithms:?}");
    }
}
