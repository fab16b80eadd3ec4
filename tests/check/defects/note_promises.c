/* The note promises a pool that the plugin has not. */
#include "healthy.h"

TN_PLUGIN_DEFINE("defect-note-promises", "1.0.0", "Acme", "Apache-2.0", "a planted defect", "",
                 "pool:first-fit pool:best-fit", NULL, NULL, NULL, capabilities);
