/*
 * The driver: found by name, not linked, so that a machine without one loses nothing but this device.
 *
 * Nothing is opened before a device is counted or opened. The library stays open, as its threads do.
 */
#include "driver.h"

#include "../common/library.h"

#define INSTEAD "use device cpu"

static tn_status functions_find(tncuda_driver *d, tn_err *err)
{
    const library_function rows[] = {
#define DRIVER(member, name, params) {name, (void *)&d->member},
#include "driver.list"
#undef DRIVER
    };

    return driver_functions(TNCUDA_VERSION, rows, sizeof rows / sizeof *rows, INSTEAD, &d->library,
                            &d->version, err);
}

static tn_status started(const tncuda_driver *d, tn_err *err)
{
    const tncuda_result result = d->init(0);

    if (result == TNCUDA_NO_DEVICE)
        return TN_OK; /* the count says so */
    if (result == TNCUDA_STUB_LIBRARY)
        return driver_is_stub(INSTEAD, err);
    return result ? tncuda_driver_fail(d, result, "the driver does not start: cuInit", err) : TN_OK;
}

tn_status tncuda_driver_open(tncuda_driver *out, tn_err *err)
{
    tncuda_driver d = {0};
    tn_status st = functions_find(&d, err);

    if (st)
        return st;
    if ((st = started(&d, err))) {
        (void)dlclose(d.library);
        return st;
    }
    *out = d;
    return TN_OK;
}

/* ---- results ------------------------------------------------------------------------------------------- */

/* Results that end a context (CUDA Driver API, enumeration CUresult), and those that are no DEVICE error. */
static const struct {
    int16_t result;
    int8_t status, sticky;
} results[] = {
    {TNCUDA_INVALID_VALUE, TN_E_INTERNAL, 0},
    {TNCUDA_OUT_OF_MEMORY, TN_E_NOMEM, 0},
    {201, TN_E_INTERNAL, 0}, /* INVALID_CONTEXT */
    {214, TN_E_DEVICE, 1},   /* ECC_UNCORRECTABLE */
    {219, TN_E_DEVICE, 1},   /* NVLINK_UNCORRECTABLE */
    {226, TN_E_DEVICE, 1},   /* CONTAINED */
    {400, TN_E_INTERNAL, 0}, /* INVALID_HANDLE */
    {700, TN_E_DEVICE, 1},   /* ILLEGAL_ADDRESS */
    {702, TN_E_DEVICE, 1},   /* LAUNCH_TIMEOUT */
    {709, TN_E_DEVICE, 1},   /* CONTEXT_IS_DESTROYED */
    {710, TN_E_DEVICE, 1},   /* ASSERT */
    {714, TN_E_DEVICE, 1},   /* HARDWARE_STACK_ERROR */
    {715, TN_E_DEVICE, 1},   /* ILLEGAL_INSTRUCTION */
    {716, TN_E_DEVICE, 1},   /* MISALIGNED_ADDRESS */
    {717, TN_E_DEVICE, 1},   /* INVALID_ADDRESS_SPACE */
    {718, TN_E_DEVICE, 1},   /* INVALID_PC */
    {719, TN_E_DEVICE, 1},   /* LAUNCH_FAILED */
    {721, TN_E_DEVICE, 1},   /* TENSOR_MEMORY_LEAK */
    {801, TN_E_UNSUPPORTED, 0},
    {900, TN_E_UNSUPPORTED, 0}, /* STREAM_CAPTURE_UNSUPPORTED */
    {999, TN_E_DEVICE, 1},      /* UNKNOWN */
};

int32_t tncuda_driver_sticky(tncuda_result result)
{
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i].result == result)
            return results[i].sticky;
    return 0;
}

tn_status tncuda_driver_fail(const tncuda_driver *driver, tncuda_result result, const char *what, tn_err *err)
{
    const char *name = NULL, *text = NULL;
    tn_status st = TN_E_DEVICE;

    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i].result == result)
            st = results[i].status;
    if (driver && driver->error_name(result, &name))
        name = NULL;
    if (driver && driver->error_text(result, &text))
        text = NULL;
    (void)tn_failf(err, st, "%s gives %s (%d): %s", what, name ? name : "an error", (int)result,
                   text ? text : "no text");
    if (err)
        err->native = result;
    return st;
}
