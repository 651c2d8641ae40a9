//! Loops compiled twice: for every processor, and for those with registers of four doubles (AVX2).
//!
//! Both do the same additions and multiplications in the same order, none of them fused, so that the bits are the same.

/// Makes a module `wide` with functions of the same names and arguments that run the wider code where there is any. The
/// functions themselves, and whatever they call in their loops, must be `#[inline(always)]`, or they stay as narrow as they were.
///
/// Exported for the experiments of the paper, which have such loops, too; no part of what the library promises.
#[doc(hidden)]
#[macro_export]
macro_rules! wide {
    ($(fn $name:ident($($argument:ident: $type:ty),+ $(,)?);)+) => {
        mod wide {
            $(
                pub(super) fn $name($($argument: $type),+) {
                    #[cfg(target_arch = "x86_64")]
                    if std::arch::is_x86_feature_detected!("avx2") {
                        #[target_feature(enable = "avx2")]
                        fn wider($($argument: $type),+) {
                            super::$name($($argument),+);
                        }
                        // SAFETY: the processor was just asked.
                        #[expect(unsafe_code, reason = "there is no other way to call code for some processors only")]
                        return unsafe { wider($($argument),+) };
                    }
                    super::$name($($argument),+);
                }
            )+
        }
    };
}

pub(super) use wide;
