// What GNUstep's Foundation asks for where blocks are on: Debian's libobjc has no blocks, its
// libblocksruntime has, under other names.
#pragma once

#include <Block.h>
