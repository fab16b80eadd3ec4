/* The smallest plugin: a descriptor with nothing behind it. */
#include <tenon/plugin/plugin.h>

static const tn_capability *const capabilities[] = {NULL};

TN_PLUGIN_DEFINE("acme", "1.0.0", "Acme", "Apache-2.0", "nothing yet", "", "", NULL, NULL, NULL,
                 capabilities);
