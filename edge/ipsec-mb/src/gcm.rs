//! AES-GCM functions of libipsec-mb for single packets, and their arguments.

use crate::NotLoaded;
use crypto::{ExpandedKey, ICV_LEN, NONCE_LEN};
use libloading::Library;
use std::ffi::{CStr, c_char};
use zeroize::Zeroize;

/// 15 round keys and 48 powers of the hash key, of 16 octets each.
const KEY_DATA_LEN: usize = (15 + 48) * 16;

/// `struct gcm_key_data`, "aligned(64)".
#[repr(C, align(64))]
struct KeyData([u8; KEY_DATA_LEN]);

/// `struct gcm_context_data`, the state of a packet in progress: 88 octets.
#[repr(C, align(64))]
struct Context([u8; 128]);

/// `aes_gcm_pre_*`: a key of 16 or 32 octets, and the buffer for the expanded key.
type Expand = unsafe extern "C" fn(*const u8, *mut KeyData);

/// `aes_gcm_enc_*` and `aes_gcm_dec_*`: key, state, output, input and its length, 12 octets of IV,
/// additional authenticated data and its length, tag and its length.
type Crypt = unsafe extern "C" fn(
    *const KeyData,
    *mut Context,
    *mut u8,
    *const u8,
    u64,
    *const u8,
    *const u8,
    u64,
    *mut u8,
    u64,
);

/// AES-GCM with keys of one length.
#[derive(Clone, Copy)]
pub(crate) struct Gcm {
    expand: Expand,
    seal: Crypt,
    open: Crypt,
}

/// Returns the suffix of the best functions for this processor, or `None` without vector AES.
pub(crate) fn kind() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let wide = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("vpclmulqdq");
        let narrow = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("aes")
            && is_x86_feature_detected!("pclmulqdq");
        match (wide, narrow) {
            (true, _) => Some("vaes_avx512"),
            (false, true) => Some("avx_gen4"),
            (false, false) => None,
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Returns the version string of the library.
pub(crate) fn version(library: &Library) -> Result<String, NotLoaded> {
    #![allow(unsafe_code, reason = "a C interface")]
    type Version = unsafe extern "C" fn() -> *const c_char;
    // SAFETY: `const char *imb_get_version_str(void)` gives a string that is never freed.
    let text = unsafe {
        let version: Version = find(library, "imb_get_version_str")?;
        CStr::from_ptr(version())
    };
    Ok(text.to_string_lossy().into_owned())
}

/// Returns a function of the library.
///
/// # Safety `F` must be the type of the function.
#[allow(unsafe_code, reason = "a C interface")]
unsafe fn find<F: Copy>(library: &Library, name: &str) -> Result<F, NotLoaded> {
    // The caller guarantees the type.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found
        .map(|function| *function)
        .map_err(|_| NotLoaded::Unknown(name.to_owned()))
}

impl Gcm {
    pub fn find(library: &Library, bits: u32, kind: &str) -> Result<Self, NotLoaded> {
        #![allow(unsafe_code, reason = "a C interface")]
        // SAFETY: these are the types of the functions of these names in `intel-ipsec-mb.h`.
        unsafe {
            Ok(Self {
                expand: find(library, &format!("aes_gcm_pre_{bits}_{kind}"))?,
                seal: find(library, &format!("aes_gcm_enc_{bits}_{kind}"))?,
                open: find(library, &format!("aes_gcm_dec_{bits}_{kind}"))?,
            })
        }
    }

    /// Expands a key, which must have the right length.
    pub fn expand(&self, key: &[u8]) -> Key {
        #![allow(unsafe_code, reason = "a C interface")]
        let mut data = Box::new(KeyData([0; KEY_DATA_LEN]));
        // SAFETY: the function reads the octets of one key, and writes at most one `KeyData`.
        unsafe { (self.expand)(key.as_ptr(), &raw mut *data) };
        Key { gcm: *self, data }
    }
}

/// An expanded key.
pub(crate) struct Key {
    gcm: Gcm,
    data: Box<KeyData>,
}

impl Key {
    fn crypt(
        &self,
        crypt: Crypt,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
    ) -> [u8; ICV_LEN] {
        #![allow(unsafe_code, reason = "a C interface")]
        let mut context = Context([0; 128]);
        let mut icv = [0; ICV_LEN];
        let text = in_out.as_mut_ptr();
        // SAFETY: every pointer is valid for the length passed with it, or for the length in the
        // header. Input and output may be the same buffer.
        unsafe {
            crypt(
                &raw const *self.data,
                &raw mut context,
                text,
                text,
                in_out.len() as u64,
                nonce.as_ptr(),
                aad.as_ptr(),
                aad.len() as u64,
                icv.as_mut_ptr(),
                ICV_LEN as u64,
            );
        }
        icv
    }
}

impl ExpandedKey for Key {
    fn seal(&self, nonce: &[u8; NONCE_LEN], aad: &[u8], in_out: &mut [u8]) -> [u8; ICV_LEN] {
        self.crypt(self.gcm.seal, nonce, aad, in_out)
    }

    fn open(&self, nonce: &[u8; NONCE_LEN], aad: &[u8], in_out: &mut [u8]) -> [u8; ICV_LEN] {
        self.crypt(self.gcm.open, nonce, aad, in_out)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.data.0.zeroize();
    }
}
