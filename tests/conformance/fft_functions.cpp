// Fourier transforms and complex numbers, for functions.cpp.
#include <string>

#include <tenon/complex.h>
#include <tenon/fft.h>

#include "conformance/arguments.h"
#include "conformance/composed_functions.h"

using namespace tenon;

namespace conformance {
namespace {

Out pairs(const Complex& z) { return {view_as_real(z)}; }

fft::Norm norm(const json& a) {
  constexpr fft::Norm norms[] = {fft::Norm::Backward, fft::Norm::Ortho, fft::Norm::Forward};
  return norms[a.at("norm").get<std::size_t>()];
}

Out along_one(const In& in, const json& a) {
  const Tensor& x = tensor(in, 0);
  const auto name = a.at("name").get<std::string>();
  const auto size = a.at("n").get<std::int64_t>();
  const fft::Length n = size < 0 ? fft::Length() : fft::Length(size);
  const int axis = a.at("axis").get<int>();
  if (name == "fft") return pairs(fft::fft(x, n, axis, norm(a)));
  if (name == "ifft") return pairs(fft::ifft(x, n, axis, norm(a)));
  if (name == "rfft") return pairs(fft::rfft(x, n, axis, norm(a)));
  if (name == "ihfft") return pairs(fft::ihfft(x, n, axis, norm(a)));
  return {name == "irfft" ? fft::irfft(x, n, axis, norm(a)) : fft::hfft(x, n, axis, norm(a))};
}

Out along_several(const In& in, const json& a) {
  const Tensor& x = tensor(in, 0);
  const auto name = a.at("name").get<std::string>();
  const fft::Extent extent{ints(a, "sizes"), ints(a, "axes")};
  if (name == "fftn") return pairs(fft::fftn(x, extent, norm(a)));
  if (name == "ifftn") return pairs(fft::ifftn(x, extent, norm(a)));
  if (name == "rfftn") return pairs(fft::rfftn(x, extent, norm(a)));
  if (name == "ihfftn") return pairs(fft::ihfftn(x, extent, norm(a)));
  return {name == "irfftn" ? fft::irfftn(x, extent, norm(a)) : fft::hfftn(x, extent, norm(a))};
}

}  // namespace

void add_fourier_transforms(Functions& f) {
  f["fft.one"] = along_one;
  f["fft.several"] = along_several;
  f["fft.fftshift"] = [](const In& in, const json& a) -> Out {
    return {fft::fftshift(tensor(in, 0), ints(a, "axes"))};
  };
  f["fft.ifftshift"] = [](const In& in, const json& a) -> Out {
    return {fft::ifftshift(tensor(in, 0), ints(a, "axes"))};
  };
  f["stft"] = [](const In& in, const json& a) {
    return pairs(stft(tensor(in, 0), {.size = a.at("size"),
                                      .hop = a.at("hop"),
                                      .window = in.size() > 1 ? tensor(in, 1) : Tensor(),
                                      .center = flag(a, "center"),
                                      .reflect = flag(a, "reflect"),
                                      .normalized = flag(a, "normalized"),
                                      .onesided = flag(a, "onesided")}));
  };
  f["angle"] = [](const In& in, const json&) -> Out { return {angle(tensor(in, 0))}; };
  f["complex"] = [](const In& in, const json&) {
    return pairs(Complex(tensor(in, 0), tensor(in, 1)));
  };
  f["polar"] = [](const In& in, const json&) { return pairs(polar(tensor(in, 0), tensor(in, 1))); };
  f["view_as_complex"] = [](const In& in, const json&) {
    return pairs(view_as_complex(tensor(in, 0)));
  };
}

}  // namespace conformance
