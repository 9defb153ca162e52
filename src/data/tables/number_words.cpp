// Numbers as words in three languages.
//
// Each language writes numbers below 1000 and composes thousands and millions from them: "million"
// is a noun, a separate word with a plural, whereas "thousand" is part of the numeral.
#include <tenon/error.h>
#include <tenon/text.h>

#include "base/str.h"

namespace tenon::data {
namespace {

constexpr std::int64_t kLargest = 999'999'999;

std::string joined(const std::string& a, const char* between, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : cat(a, between, b);
}

// ---- English, as in the United States: no "and" -------------------------------------------------

constexpr const char* kEnglish[] = {"",        "one",     "two",       "three",    "four",
                                    "five",    "six",     "seven",     "eight",    "nine",
                                    "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr const char* kEnglishTens[] = {"",      "",      "twenty",  "thirty", "forty",
                                        "fifty", "sixty", "seventy", "eighty", "ninety"};

std::string english_part(std::int64_t n) {
  const std::string hundreds = n >= 100 ? cat(kEnglish[n / 100], " hundred") : "";
  const std::int64_t rest = n % 100;
  return joined(
      hundreds, " ",
      rest < 20 ? kEnglish[rest] : joined(kEnglishTens[rest / 10], "-", kEnglish[rest % 10]));
}

std::string english(std::int64_t n) {
  const std::int64_t millions = n / 1'000'000, thousands = n / 1000 % 1000;
  const std::string a = millions > 0 ? english_part(millions) + " million" : "",
                    b = thousands > 0 ? english_part(thousands) + " thousand" : "";
  return joined(joined(a, " ", b), " ", english_part(n % 1000));
}

// ---- French, in the traditional spelling: "et" before un and onze, hyphens below a hundred ------

constexpr const char* kFrench[] = {"",       "un",    "deux",     "trois",    "quatre",
                                   "cinq",   "six",   "sept",     "huit",     "neuf",
                                   "dix",    "onze",  "douze",    "treize",   "quatorze",
                                   "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf"};
constexpr const char* kFrenchTens[] = {"",         "",          "vingt",   "trente",
                                       "quarante", "cinquante", "soixante"};

// Vingt and cent are counted, "quatre-vingts", "deux cents", where no numeral follows: at the end
// and before the noun million, not before mille.
std::string french_below_hundred(std::int64_t n, bool ends) {
  if (n < 20) return kFrench[n];
  if (n == 80) return ends ? "quatre-vingts" : "quatre-vingt";
  if (n > 80) return cat("quatre-vingt-", kFrench[n - 80]);
  const std::int64_t tens = n < 70 ? n / 10 : 6, rest = n - 10 * tens;
  return joined(kFrenchTens[tens], rest == 1 || rest == 11 ? " et " : "-", kFrench[rest]);
}

std::string french_part(std::int64_t n, bool ends) {
  const std::int64_t hundreds = n / 100, rest = n % 100;
  const std::string count = hundreds > 1 ? cat(kFrench[hundreds], " ") : "";
  const std::string head =
      hundreds == 0 ? "" : cat(count, hundreds > 1 && rest == 0 && ends ? "cents" : "cent");
  return joined(head, " ", french_below_hundred(rest, ends));
}

std::string french(std::int64_t n) {
  const std::int64_t millions = n / 1'000'000, thousands = n / 1000 % 1000;
  const std::string a =
      millions == 0 ? ""
                    : cat(french_part(millions, true), millions > 1 ? " millions" : " million");
  const std::string b = thousands == 0   ? ""
                        : thousands == 1 ? "mille"
                                         : french_part(thousands, false) + " mille";
  return joined(joined(a, " ", b), " ", french_part(n % 1000, true));
}

// ---- German: one word below a million, ones before tens -----------------------------------------

constexpr const char* kGerman[] = {"",         "ein",      "zwei",     "drei",     "vier",
                                   "fünf",     "sechs",    "sieben",   "acht",     "neun",
                                   "zehn",     "elf",      "zwölf",    "dreizehn", "vierzehn",
                                   "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
constexpr const char* kGermanTens[] = {"",        "",        "zwanzig", "dreißig", "vierzig",
                                       "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};

// A one at the end is "eins"; before "tausend" it is "ein", and before "Million" "eine".
std::string german_part(std::int64_t n, const char* one) {
  const std::string hundreds = n >= 100 ? cat(kGerman[n / 100], "hundert") : "";
  const std::int64_t rest = n % 100;
  if (rest == 1) return hundreds + one;
  if (rest < 20) return hundreds + kGerman[rest];
  return hundreds + joined(kGerman[rest % 10], "und", kGermanTens[rest / 10]);
}

std::string german(std::int64_t n) {
  const std::int64_t millions = n / 1'000'000, thousands = n / 1000 % 1000;
  const std::string a =
      millions == 0 ? ""
                    : cat(german_part(millions, "eine"), millions > 1 ? " Millionen" : " Million");
  const std::string b = thousands == 0 ? "" : german_part(thousands, "ein") + "tausend";
  return joined(a, " ", b + german_part(n % 1000, "eins"));
}

}  // namespace

std::string number_words(std::int64_t number, Language language) {
  if (number < 0 || number > kLargest)
    throw ValueError(cat("number_words: ", number, " must be from 0 to ", kLargest));
  switch (language) {
    case Language::French:
      return number == 0 ? "zéro" : french(number);
    case Language::German:
      return number == 0 ? "null" : german(number);
    default:
      return number == 0 ? "zero" : english(number);
  }
}

}  // namespace tenon::data
