// Marks what libsherlorch.so offers to programs; everything else of the adapter stays hidden.
#pragma once

#define SHERLORCH_API __attribute__((visibility("default")))
