// The Metal plug-in, libmillrace_metal: the system's default device of Apple silicon as a
// BackendApi (cpp/backend.h). Pure C++: Objective-C stays in the modules of this folder. Everything
// but millrace_backend() is hidden.
//
// A device pointer of the table is a GPU address, so the core may put it into argument blocks but
// never reads through it. Memory is of one kind, shared by CPU and GPU; what differs is the address
// that the table hands out.
//
// All streams of a device share one queue: the order of submission is the order of execution. The
// thread that submits first submits everything; others are refused, and may only ask and wait.
// Nothing is ever submitted in the background: what runs between two events is committed by
// record_event().
#pragma once

#include "backend.h"

extern "C" __attribute__((visibility("default"))) const millrace::BackendApi* millrace_backend(
    char* text, uint64_t text_bytes);
