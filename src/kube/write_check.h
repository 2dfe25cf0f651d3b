/* SPDX-License-Identifier: Apache-2.0 */
/* write_check.h - whether a write may be sent; nobody but write.c asks. */
#ifndef GS_KUBE_WRITE_CHECK_H
#define GS_KUBE_WRITE_CHECK_H

struct err;
struct kube_write;

/* 0, -EINVAL, -E2BIG, -ENOMEM; the sentence names the object. */
int kube_write_check(const struct kube_write *write, struct err *err);

#endif
