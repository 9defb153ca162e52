// Special functions of float: erfc, quantiles of the normal distribution, lgamma, digamma, trigamma
// and Bessel functions. Branch-free: every part is computed, and comparisons select.
//
// erfc and erfinv are computed in float, the others in double. The numbers of erfc, erfinv and
// lgamma are fits by least squares with relative errors below 1e-8; the others are published.
#pragma once

#include "scalar/config.h"
#include "scalar/exp.h"
#include "scalar/log.h"
#include "scalar/trig.h"

TENON_SCALAR_BEGIN

/// A polynomial by Horner's rule; the coefficient of the highest power comes first.
template <class T>
TENON_SCALAR T horner(T, T sum) {
  return sum;
}
template <class T, class... More>
TENON_SCALAR T horner(T x, T sum, T next, More... more) {
  return horner(x, fused(sum, x, next), more...);
}

/// A Chebyshev series at x / 2 by Clenshaw's recurrence: the coefficient of the highest degree
/// comes first, and the last one counts half.
TENON_SCALAR double clenshaw(double x, double current, double before, double last) {
  return (fused(x, current, last - before) - before) * 0.5;
}
template <class... More>
TENON_SCALAR double clenshaw(double x, double current, double before, double next, double following,
                             More... more) {
  return clenshaw(x, fused(x, current, next - before), current, following, more...);
}
template <class... More>
TENON_SCALAR double chebyshev(double x, double first, More... more) {
  return clenshaw(x, first, 0.0, more...);
}

// ---- The complement of the error function -----------------------------------------------------

/// x^2 in two parts: that of the leading bits of x is exact, so that its rounding is no relative
/// error of the exponential. The size is limited to where the result is zero.
TENON_SCALAR float erfc(float x) {
  const float size = magnitude(x), limited = size > 11.0f ? 11.0f : size;
  const float lead = float_of(bits_of(limited) & 0xfffff000u);
  const float t = 3.0f / (size + 3.0f);
  const float scaled =
      t * horner(t - 0.6125f, -0.02711428f, -0.000706259593f, 0.067109186f, 0.0153875485f,
                 -0.145028394f, -0.137704865f, 0.231653126f, 0.786679348f, 1.14949561f, 1.11876145f,
                 0.801288085f, 0.435502981f);
  const float rest = (lead - limited) * (lead + limited);
  // e^rest for -0.1 < rest <= 0.
  const float small =
      horner(rest, 8.33333333e-3f, 4.16666667e-2f, 1.66666667e-1f, 0.5f, 1.0f, 1.0f);
  const float tail = exp(-lead * lead) * (small * scaled);
  return x < 0.0f ? 2.0f - tail : tail;
}

// ---- Quantiles of the normal distribution -----------------------------------------------------

/// x times a polynomial in w = -log(1 - x^2), or from w = 5 on in its root.
TENON_SCALAR float erfinv(float x) {
  const float w = -log((1.0f - x) * (1.0f + x)), root = ::sqrtf(w);
  const float near = horner(w - 2.5f, -8.79103791e-09f, 2.32326345e-08f, 4.66170408e-07f,
                            -3.46270464e-06f, -4.96334668e-06f, 0.000218344439f, -0.00125274188f,
                            -0.00417738678f, 0.246640286f, 1.50140936f);
  const float far = horner(root - 3.1f, 0.000110574456f, -0.000205318909f, -0.000253413618f,
                           0.00136863015f, -0.00273978618f, 0.00410669874f, -0.0056916725f,
                           0.00746163272f, 1.00335587f, 2.93323165f);
  const float y = x * (w < 5.0f ? near : far);
  const float infinity = float_of(0x7f800000u);
  return magnitude(x) == 1.0f ? with_sign(infinity, x) : y;
}

/// The quantile of a probability with the distance q from a half and the distance `tail` from the
/// nearer end: Wichura, algorithm AS 241, Applied Statistics 37 (1988).
TENON_SCALAR double normal_quantile(double q, double tail) {
  const double r = ::sqrt(-log(tail)), s = r - 1.6, f = r - 5.0, z = 0.180625 - q * q;
  const double central =
      horner(z, 2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4,
             4.5921953931549871457e+4, 1.3731693765509461125e+4, 1.9715909503065514427e+3,
             1.3314166789178437745e+2, 3.3871328727963666080e+0) /
      horner(z, 5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4,
             2.1213794301586595867e+4, 5.3941960214247511077e+3, 6.8718700749205790830e+2,
             4.2313330701600911252e+1, 1.0);
  const double middle =
      horner(s, 7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
             1.27045825245236838258e+0, 3.64784832476320460504e+0, 5.76949722146069140550e+0,
             4.63033784615654529590e+0, 1.42343711074968357734e+0) /
      horner(s, 1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
             1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e+0,
             2.05319162663775882187e+0, 1.0);
  const double far =
      horner(f, 2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
             2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e+0,
             5.46378491116411436990e+0, 6.65790464350110377720e+0) /
      horner(f, 2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
             7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
             5.99832206555887937690e-1, 1.0);
  const double infinity = double_of(0x7ff0000000000000ull);
  const double size = tail == 0.0 ? infinity : (r <= 5.0 ? middle : far);
  const double outside = q < 0.0 ? -size : size;
  return magnitude(q) <= 0.425 ? q * central : outside;
}
TENON_SCALAR float ndtri(float p) {
  const double wide = static_cast<double>(p), other = 1.0 - wide;
  return static_cast<float>(normal_quantile(wide - 0.5, wide <= 0.5 ? wide : other));
}

// ---- The gamma function -----------------------------------------------------------------------

inline constexpr double kPi = 3.14159265358979323846;

/// x without its nearest integer, so that sin(pi x) is exact at integers.
TENON_SCALAR double off_integer(double x) { return x - ::rint(x); }

/// lgamma of x, from that of z >= 1: of 1 - x for x < 0, of x + 1 for x < 1, of x beyond.
TENON_SCALAR double argument_from_1(double x) {
  const double mirrored = 1.0 - x, shifted = x + 1.0;
  return x < 0.0 ? mirrored : (x < 1.0 ? shifted : x);
}
TENON_SCALAR double log_gamma_of(double x, double value) {
  const double sine = magnitude(sin_wide(off_integer(x) * kPi, 0));
  const double edge = log(x < 0.0 ? kPi / sine : x);
  const double mirrored = edge - value, below = value - edge;
  const double finite = x < 0.0 ? mirrored : (x < 1.0 ? below : value);
  const double infinity = double_of(0x7ff0000000000000ull);
  return magnitude(x) == infinity ? infinity : finite;
}

/// A polynomial times the zeros at 1 and 2, and Stirling's series from 3 on.
TENON_SCALAR float lgamma(float wide) {
  const double x = static_cast<double>(wide);
  const double z = argument_from_1(x), t = z - 2.0, inverse = 1.0 / z;
  const double near =
      t * (z - 1.0) *
      horner(t, 4.8741154222011778e-06, -9.6774796201626323e-06, 2.2496361587106328e-06,
             -7.282428392740746e-06, 4.3705190953903835e-05, -9.1734127463265541e-05,
             0.00017980725397454746, -0.00040198258843820181, 0.00091610342450605784,
             -0.0021089416291939999, 0.0049985476936520992, -0.012384115116465201,
             0.032965005173936739, -0.10031730378142049, 0.42278433506223645);
  const double series = inverse * horner(inverse * inverse, -691.0 / 360360, 1.0 / 1188,
                                         -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12);
  const double far = (z - 0.5) * log(z) - z + 0.91893853320467274178 + series;
  return static_cast<float>(log_gamma_of(x, z < 3.0 ? near : far));
}

/// The recurrence ten times, two terms in one quotient, then the asymptotic series.
TENON_SCALAR float digamma(float argument) {
  const double x = static_cast<double>(argument);
  const double mirrored = 1.0 - x, z = x < 0.0 ? mirrored : x;
  const double pairs = fused(2.0, z, 3.0) / ((z + 1.0) * (z + 2.0)) +
                       fused(2.0, z, 7.0) / ((z + 3.0) * (z + 4.0)) +
                       fused(2.0, z, 11.0) / ((z + 5.0) * (z + 6.0)) +
                       fused(2.0, z, 15.0) / ((z + 7.0) * (z + 8.0)) + 1.0 / (z + 9.0);
  const double below = 1.0 / z + (z < 1e100 ? pairs : 0.0);
  const double far = z + 10.0, inverse = 1.0 / far, square = inverse * inverse;
  const double series = square * horner(square, 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240,
                                        1.0 / 252, -1.0 / 120, 1.0 / 12);
  const double value = log(far) - inverse * 0.5 - series - below;
  const double turn = off_integer(x) * kPi;
  const double reflected = value - kPi * sin_wide(turn, 1) / sin_wide(turn, 0);
  const double nan = double_of(0x7ff8000000000000ull);
  return static_cast<float>(x < 0.0 ? (x == ::floor(x) ? nan : reflected) : value);
}

/// The derivative of digamma, in the same way.
TENON_SCALAR double square_pair(double a) {
  const double b = a + 1.0, product = a * b;
  return (a * a + b * b) / (product * product);
}
TENON_SCALAR float trigamma(float argument) {
  const double x = static_cast<double>(argument);
  const double mirrored = 1.0 - x, z = x < 0.0 ? mirrored : x;
  const double pairs = square_pair(z + 1.0) + square_pair(z + 3.0) + square_pair(z + 5.0) +
                       square_pair(z + 7.0) + 1.0 / ((z + 9.0) * (z + 9.0));
  const double first = 1.0 / z, far = z + 10.0, inverse = 1.0 / far, square = inverse * inverse;
  const double series =
      inverse * square *
      horner(square, 7.0 / 6, -691.0 / 2730, 5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30, 1.0 / 6);
  const double value = first * first + (z < 1e70 ? pairs : 0.0) + inverse + 0.5 * square + series;
  const double slope = kPi / sin_wide(off_integer(x) * kPi, 0);
  const double infinity = double_of(0x7ff0000000000000ull), reflected = slope * slope - value;
  return static_cast<float>(x <= 0.0 && x == ::floor(x) ? infinity : (x < 0.0 ? reflected : value));
}

// ---- Modified Bessel functions of the first kind, times e^-|x| ---------------------------------

// The series of the Cephes library (Moshier, 1989), up to 8 and beyond, without terms below 4e-10.
/// Of |x|.
TENON_SCALAR double i0e_wide(float x) {
  const double size = static_cast<double>(magnitude(x));
  const double near =
      chebyshev(size * 0.5 - 2.0, -5.18979560163526290666E-10, 2.65982372468238665035E-9,
                -1.30002500998624804212E-8, 6.04699502254191894932E-8, -2.67079385394061173391E-7,
                1.11738753912010371815E-6, -4.41673835845875056359E-6, 1.64484480707288970893E-5,
                -5.75419501008210370398E-5, 1.88502885095841655729E-4, -5.76375574538582365885E-4,
                1.63947561694133579842E-3, -4.32430999505057594430E-3, 1.05464603945949983183E-2,
                -2.37374148058994688156E-2, 4.93052842396707084878E-2, -9.49010970480476444210E-2,
                1.71620901522208775349E-1, -3.04682672343198398683E-1, 6.76795274409476084995E-1);
  const double far =
      chebyshev(32.0 / size - 2.0, 4.94060238822496958910E-10, 3.39623202570838634515E-9,
                2.26666899049817806459E-8, 2.04891858946906374183E-7, 2.89137052083475648297E-6,
                6.88975834691682398426E-5, 3.36911647825569408990E-3, 8.04490411014108831608E-1);
  return size <= 8.0 ? near : far / ::sqrt(size);
}
TENON_SCALAR float i0e(float x) { return static_cast<float>(i0e_wide(x)); }

/// Of |x|.
TENON_SCALAR double i1e_wide(float x) {
  const double size = static_cast<double>(magnitude(x));
  const double near =
      size *
      chebyshev(size * 0.5 - 2.0, 3.62559028155211703701E-10, -1.88724975172282928790E-9,
                9.38153738649577178388E-9, -4.44505912879632808065E-8, 2.00329475355213526229E-7,
                -8.56872026469545474066E-7, 3.47025130813767847674E-6, -1.32731636560394358279E-5,
                4.78156510755005422638E-5, -1.61760815825896745588E-4, 5.12285956168575772895E-4,
                -1.51357245063125314899E-3, 4.15642294431288815669E-3, -1.05640848946261981558E-2,
                2.47264490306265168283E-2, -5.29459812080949914269E-2, 1.02643658689847095384E-1,
                -1.76416518357834055153E-1, 2.52587186443633654823E-1);
  const double far =
      chebyshev(32.0 / size - 2.0, -5.58974346219658380687E-10, -3.83538038596423702205E-9,
                -2.63146884688951950684E-8, -2.51223623787020892529E-7, -3.88256480887769039346E-6,
                -1.10588938762623716291E-4, -9.76109749136146840777E-3, 7.78576235018280120474E-1);
  return size <= 8.0 ? near : far / ::sqrt(size);
}
TENON_SCALAR float i1e(float x) { return with_sign(static_cast<float>(i1e_wide(x)), x); }

/// e^x overflows earlier than the product.
TENON_SCALAR float i0(float x) {
  const double root = exp(0.5 * static_cast<double>(magnitude(x)));
  const float y = static_cast<float>(i0e_wide(x) * root * root);
  return magnitude(x) == float_of(0x7f800000u) ? magnitude(x) : y;
}
TENON_SCALAR float i1(float x) {
  const double root = exp(0.5 * static_cast<double>(magnitude(x)));
  const float y = static_cast<float>(i1e_wide(x) * root * root);
  return magnitude(x) == float_of(0x7f800000u) ? x : with_sign(y, x);
}

// ---- Bessel functions of the first kind --------------------------------------------------------

// The quotients of the Cephes library: up to 5 in x^2 without the first two zeros, beyond the
// amplitudes of cosine and sine in 25 / x^2. j0_small and j1_small are for |x| < kTrigLimit.

TENON_SCALAR double j0_near(double size) {
  const double z = size * size;
  const double above = horner(z, -4.79443220978201773821e+09, 1.95617491946556577543e+12,
                              -2.49248344360967716204e+14, 9.70862251047306323952e+15);
  const double below =
      horner(z, 1.0, 4.99563147152651017219e+02, 1.73785401676374683123e+05,
             4.84409658339962045305e+07, 1.11855537045356834862e+10, 2.11277520115489217587e+12,
             3.10518229857422583814e+14, 3.18121955943204943306e+16, 1.71086294081043136091e+18);
  return (z - 5.78318596294678452118) * (z - 30.4712623436620863991) * (above / below);
}
/// sine and cosine: of x - 0.25 pi.
TENON_SCALAR double j0_far(double size, double cosine, double sine) {
  const double w = 5.0 / size, z = w * w;
  const double p =
      horner(z, 7.96936729297347051624e-04, 8.28352392107440799803e-02, 1.23953371646414299388e+00,
             5.44725003058768775090e+00, 8.74716500199817011941e+00, 5.30324038235394892183e+00,
             9.99999999999999997821e-01) /
      horner(z, 9.24408810558863637013e-04, 8.56288474354474431428e-02, 1.25352743901058953537e+00,
             5.47097740330417105182e+00, 8.76190883237069594232e+00, 5.30605288235394617618e+00,
             1.00000000000000000218e+00);
  const double q =
      w *
      horner(z, -1.13663838898469149931e-02, -1.28252718670509318512e+00,
             -1.95539544257735972385e+01, -9.32060152123768231369e+01, -1.77681167980488050595e+02,
             -1.47077505154951170175e+02, -5.14105326766599330220e+01,
             -6.05014350600728481186e+00) /
      horner(z, 1.0, 6.43178256118178023184e+01, 8.56430025976980587198e+02,
             3.88240183605401609683e+03, 7.24046774195652478189e+03, 5.93072701187316984827e+03,
             2.06209331660327847417e+03, 2.42005740240291393179e+02);
  const double infinity = double_of(0x7ff0000000000000ull);
  const double wave = (p * cosine - q * sine) * 0.79788456080286535588 / ::sqrt(size);
  return size == infinity ? 0.0 : wave;
}
TENON_SCALAR float j0_small(float x) {
  const double size = static_cast<double>(magnitude(x)), angle = size - 0.25 * kPi;
  const double far = j0_far(size, sin_wide(angle, 1), sin_wide(angle, 0));
  return static_cast<float>(size <= 5.0 ? j0_near(size) : far);
}
TENON_SCALAR float j0(float x) {
  const double size = static_cast<double>(magnitude(x)), angle = size - 0.25 * kPi;
  const double far = j0_far(size, ::cos(angle), ::sin(angle));
  return static_cast<float>(size <= 5.0 ? j0_near(size) : far);
}

TENON_SCALAR double j1_near(double size) {
  const double z = size * size;
  const double above = horner(z, -8.99971225705559398224e+08, 4.52228297998194034323e+11,
                              -7.27494245221818276015e+13, 3.68295732863852883286e+15);
  const double below =
      horner(z, 1.0, 6.20836478118054335476e+02, 2.56987256757748830383e+05,
             8.35146791431949253037e+07, 2.21511595479792499675e+10, 4.74914122079991414898e+12,
             7.84369607876235854894e+14, 8.95222336184627338078e+16, 5.32278620332680085395e+18);
  return size * (z - 14.6819706421238932572) * (z - 49.2184563216946036703) * (above / below);
}
/// sine and cosine: of x - 0.75 pi.
TENON_SCALAR double j1_far(double size, double cosine, double sine) {
  const double w = 5.0 / size, z = w * w;
  const double p =
      horner(z, 7.62125616208173112003e-04, 7.31397056940917570436e-02, 1.12719608129684925192e+00,
             5.11207951146807644818e+00, 8.42404590141772420927e+00, 5.21451598682361504063e+00,
             1.00000000000000000254e+00) /
      horner(z, 5.71323128072548699714e-04, 6.88455908754495404082e-02, 1.10514232634061696926e+00,
             5.07386386128601488557e+00, 8.39985554327604159757e+00, 5.20982848682361821619e+00,
             9.99999999999999997461e-01);
  const double q =
      w *
      horner(z, 5.10862594750176621635e-02, 4.98213872951233449420e+00, 7.58238284132545283818e+01,
             3.66779609360150777800e+02, 7.10856304998926107277e+02, 5.97489612400613639965e+02,
             2.11688757100572135698e+02, 2.52070205858023719784e+01) /
      horner(z, 1.0, 7.42373277035675149943e+01, 1.05644886038262816351e+03,
             4.98641058337653607651e+03, 9.56231892404756170795e+03, 7.99704160447350683650e+03,
             2.82619278517639096600e+03, 3.36093607810698293419e+02);
  const double infinity = double_of(0x7ff0000000000000ull);
  const double wave = (p * cosine - q * sine) * 0.79788456080286535588 / ::sqrt(size);
  return size == infinity ? 0.0 : wave;
}
TENON_SCALAR float j1_small(float x) {
  const double size = static_cast<double>(magnitude(x)), angle = size - 0.75 * kPi;
  const double far = j1_far(size, sin_wide(angle, 1), sin_wide(angle, 0));
  const float y = static_cast<float>(size <= 5.0 ? j1_near(size) : far);
  return x < 0.0f ? -y : y;
}
TENON_SCALAR float j1(float x) {
  const double size = static_cast<double>(magnitude(x)), angle = size - 0.75 * kPi;
  const double far = j1_far(size, ::cos(angle), ::sin(angle));
  const float y = static_cast<float>(size <= 5.0 ? j1_near(size) : far);
  return x < 0.0f ? -y : y;
}

/// No square of a float overflows or vanishes in double.
TENON_SCALAR float hypot(float a, float b) {
  const double x = static_cast<double>(a), y = static_cast<double>(b);
  const float infinity = float_of(0x7f800000u), root = static_cast<float>(::sqrt(x * x + y * y));
  const bool first = magnitude(a) == infinity, second = magnitude(b) == infinity;
  const bool ends = first | second;  // without a branch
  return ends ? infinity : root;
}

TENON_SCALAR_END
