/* The oldest versions of functions that newer releases of glibc moved into libc.so under new ones, so that an engine that was built
 * on a new system loads from glibc 2.17 on (manylinux2014), where they are in libpthread.so, which Python is linked with. */
#ifndef FL_OLDEST_H
#define FL_OLDEST_H
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#if defined(__x86_64__)
#define FL_OLDEST(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#elif defined(__aarch64__)
#define FL_OLDEST(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#endif
#endif
#ifdef FL_OLDEST
FL_OLDEST(pthread_attr_setstacksize); /* 2.34 */
FL_OLDEST(pthread_create);            /* 2.34 */
FL_OLDEST(pthread_sigmask);           /* 2.32 */
#endif
#endif
