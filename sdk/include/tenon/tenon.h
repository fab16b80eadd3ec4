/** All of Tenon for programs: contexts, arrays, operators, gradients, symbols, files. */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include "array.h"
#include "autograd.h"
#include "base.h"
#include "checkpoint.h"
#include "context.h"
#include "data.h"
#include "device.h"
#include "dlpack.h"
#include "engine.h"
#include "errors.h"
#include "executor.h"
#include "function.h"
#include "image.h"
#include "kernel.h"
#include "kv.h"
#include "op.h"
#include "params.h"
#include "program.h"
#include "random.h"
#include "record.h"
#include "symbol.h"
#include "view.h"

#endif
