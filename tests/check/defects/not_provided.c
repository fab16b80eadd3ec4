/* `provides` of the note forgets the pool, so that nobody will ever load the plugin for it. */
#include "healthy.h"

TN_PLUGIN_DEFINE("defect-not-provided", "1.0.0", "Acme", "Apache-2.0", "a planted defect", "",
                 "pool:best-fit", NULL, NULL, NULL, capabilities);
