/* Hosts as text: which one a process listens on (address.c). */
#ifndef TN_KV_ADDRESS_H
#define TN_KV_ADDRESS_H

#include "base/base.h"

bool tni_kv_host_loopback(const char *host); /* of this machine alone, by its name; "" is */
tn_status tni_kv_place_text(const char *host, uint64_t port, char *out, size_t size); /* "HOST:PORT" */
/* An address of this machine, as a number. TN_E_ATTR, TN_E_IO: there is none, or no such host. */
tn_status tni_kv_host_of_interface(const char *interface, char *out, size_t size);
tn_status tni_kv_host_of_route(const char *to, char *out, size_t size);

#endif
