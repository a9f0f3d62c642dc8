// What Metal refuses and clang takes: tools/metal_strict --expect must find every marked line, and
// no other.
#include "simd_team.h"

using namespace metal;
using namespace millrace;

namespace millrace {

constexpr u32 kOutside = 3;  // refused
MR_CONSTEXPR u32 kConstant = 3;

struct Held {
  float* leads_where;  // refused
  int a;
  int get() const { return a; }
};

float missing(const float* x) { return *x; }                                         // refused
float missing_array(MR_THREAD float (&x)[2], float (&y)[3]) { return x[0] + y[0]; }  // refused
template <class T>
float missing_template(const T& t) {  // refused
  return t.a;
}
MR_DEVICE float* returned(MR_DEVICE float* x) { return x; }
float missing_local(MR_DEVICE float* x) {
  const float* y = x;  // refused
  return *y;
}
float deduced(MR_DEVICE float* x) {
  auto y = returned(x);
  return *y;
}
float literal() { return 1.0 * 2; }                        // refused
double wide() { return 2.0f; }                             // refused
int recursive(int x) { return x ? recursive(x - 1) : 0; }  // refused
float uses_lambda(float x) {
  auto f = [&](float y) { return x + y; };  // refused
  return f(2.0f);
}
int member_of_device(MR_DEVICE const Held* g) { return g->get(); }     // refused
int member_of_constant(MR_CONSTANT const Held& g) { return g.get(); }  // refused
int member_of_copy(MR_DEVICE const Held* g) {
  const Held c = *g;
  return c.get();
}
int has_static() {
  static int n;  // refused
  return ++n;
}
float reserved(float vertex) { return vertex; }  // refused
int mixed = kConstant;                           // refused

}  // namespace millrace
