#include "record/redact.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"

namespace hotlap {
namespace {

constexpr std::size_t kValueBytesMax = 1024;  // of a kept environment variable

bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// The parts of a name: "--wandbApiKey" and "WANDB_API_KEY" → wandb api key.
std::vector<std::string> name_parts(std::string_view name) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (!is_alnum(name[i])) {
      if (!parts.back().empty()) parts.emplace_back();
      continue;
    }
    const bool hump = std::isupper(c) != 0 && i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (hump && !parts.back().empty()) parts.emplace_back();
    parts.back().push_back(static_cast<char>(std::tolower(c)));
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

// Training has names of its own for harmless things: --max-tokens, --tokenizer, --token-length, --key-dim.
bool is_count_of_tokens(const std::vector<std::string>& parts) {
  static constexpr std::array<std::string_view, 15> kMeasures{"max",    "min",  "num",   "n",     "length",
                                                              "len",    "size", "count", "dim",   "per",
                                                              "budget", "drop", "mask",  "level", "classification"};
  return std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
    return std::find(kMeasures.begin(), kMeasures.end(), part) != kMeasures.end();
  });
}

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Part `i` of the name, "key" or "pass", means a secret by what stands before it: --wandb-key, --db-pass; but neither
// --image-key nor --two-pass.
bool is_secret_by_owner(const std::vector<std::string>& parts, std::size_t i) {
  static constexpr std::array<std::string_view, 27> kOwnersOfKeys{
      "api",    "access",  "private", "secret", "account",     "license", "signing", "wandb",     "comet",
      "openai", "neptune", "mlflow",  "hf",     "huggingface", "aws",     "azure",   "gcp",       "google",
      "ssh",    "service", "storage", "client", "encryption",  "master",  "clearml", "anthropic", "session"};
  static constexpr std::array<std::string_view, 17> kOwnersOfPasswords{
      "db",    "user",  "admin", "root", "login", "mysql", "pg",   "postgres", "redis",
      "mongo", "proxy", "smtp",  "mail", "http",  "ssh",   "sudo", "rsync"};
  const bool is_key = parts[i] == "key" || parts[i] == "keys";
  if (is_key) return i > 0 && is_one_of(kOwnersOfKeys, parts[i - 1]);
  return parts[i] == "pass" && (parts.size() == 1 || (i > 0 && is_one_of(kOwnersOfPasswords, parts[i - 1])));
}

// Written as one word: ACCESSTOKEN, dbpassword, clientsecret; but not maxtoken.
bool has_secret_tail(std::string_view part) {
  static constexpr std::array<std::string_view, 14> kMarks{"max", "min", "num", "eos", "bos",  "pad",  "unk",
                                                           "sep", "cls", "sub", "pre", "mask", "stop", "special"};
  for (const std::string_view tail : {"password", "passwd", "secret", "apikey", "secretkey", "token", "credentials"}) {
    if (part.size() <= tail.size() || !part.ends_with(tail)) continue;
    return tail != "token" || !is_one_of(kMarks, part.substr(0, part.size() - tail.size()));
  }
  return false;
}

bool is_secret_name(std::string_view name) {
  static constexpr std::array<std::string_view, 19> kSecretParts{
      "jwt",     "token",      "password",    "passwd",    "passphrase", "pwd",  "secret",
      "secrets", "credential", "credentials", "apikey",    "accesskey",  "auth", "bearer",
      "cookie",  "pat",        "passcode",    "authtoken", "sas"};
  const std::vector<std::string> parts = name_parts(name);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (is_one_of(kSecretParts, part)) return part != "token" || !is_count_of_tokens(parts);
    if (is_secret_by_owner(parts, i) || has_secret_tail(part)) return true;
  }
  return false;
}

// Shapes that are secrets wherever they stand: prefix, then at least so many characters of the token's alphabet.
struct TokenShape {
  std::string_view prefix;
  std::size_t rest_min;
};
constexpr std::array<TokenShape, 22> kShapes{
    {{"AKIA", 16},  {"ASIA", 16},  {"hf_", 16},         {"ghp_", 20},   {"gho_", 20}, {"ghu_", 20},
     {"ghs_", 20},  {"ghr_", 20},  {"github_pat_", 20}, {"glpat-", 16}, {"sk-", 16},  {"sk_live_", 12},
     {"xoxb-", 10}, {"xoxp-", 10}, {"xoxa-", 10},       {"xapp-", 10},  {"AIza", 30}, {"ya29.", 20},
     {"eyJ", 30},   {"npm_", 30},  {"pypi-", 30},       {"dapi", 32}}};

bool is_token_char(char c) {
  return is_alnum(c) || c == '_' || c == '-' || c == '.' || c == '+' || c == '/' || c == '=';
}

// Length of the secret that begins at `at`; 0: none does. Looks for a token's end only behind a known prefix: a command
// line may hold a word of 128 KiB, and the job waits.
std::size_t secret_length(std::string_view text, std::size_t at) {
  if (at > 0 && is_alnum(text[at - 1])) return 0;
  const std::string_view rest = text.substr(at);
  for (const TokenShape& shape : kShapes) {
    if (!rest.starts_with(shape.prefix)) continue;
    std::size_t end = shape.prefix.size();
    while (end < rest.size() && is_token_char(rest[end])) ++end;
    if (end >= shape.prefix.size() + shape.rest_min) return end;
  }
  return 0;
}

// Replaces tokens by shape, and what follows "Bearer " or "Basic ".
std::string hide_shapes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t length = secret_length(text, i); length > 0) {
      out += kRedacted;
      i += length;
    } else {
      out.push_back(text[i++]);
    }
  }
  // "basic" is a word of English too.
  for (const auto& [scheme, least] : {std::pair<std::string_view, std::size_t>{"bearer ", 4}, {"basic ", 8}}) {
    const std::string low = to_lower(out);
    const std::size_t at = low.find(scheme);
    if (at == std::string::npos || (at > 0 && is_alnum(low[at - 1]))) continue;
    const std::size_t from = at + scheme.size();
    std::size_t to = from;
    while (to < out.size() && is_token_char(out[to])) ++to;
    if (to - from >= least) out.replace(from, to - from, kRedacted);
  }
  return out;
}

// scheme://user:password@host → scheme://***@host; also secret parameters of a query (?token=…).
std::string hide_url_credentials(std::string_view text) {
  std::string out;
  std::size_t taken = 0;      // of `text`, into `out`
  std::size_t word_end = 0;   // of the word that the URL stands in; kept for the next one
  std::size_t last_sign = 0;  // the last @ of that word, or npos
  for (std::size_t at = text.find("://"); at != std::string_view::npos;
       at = text.find("://", std::max(at + 3, taken))) {
    const std::size_t from = at + 3;
    if (from > word_end) {
      word_end = std::min(text.find_first_of(" \t\n\v\f\r", from), text.size());
      last_sign = text.substr(from, word_end - from).rfind('@');
      if (last_sign != std::string_view::npos) last_sign += from;
    }
    const std::size_t end = std::min(text.find_first_of("/?#\"'", from), word_end);
    const std::string_view authority = text.substr(from, end - from);
    const std::size_t colon = authority.find(':');
    std::size_t hidden_to = from;
    if (const std::size_t sign = authority.rfind('@'); sign != std::string_view::npos) {
      hidden_to = from + sign;
    } else if (last_sign != std::string_view::npos && last_sign >= end && colon != std::string_view::npos) {
      // A password may hold a slash or a question mark that was not encoded: the last @ before a space counts too.
      const std::string_view port = authority.substr(colon + 1);
      const bool is_port = !port.empty() && port.find_first_not_of("0123456789") == std::string_view::npos;
      if (!is_port) hidden_to = last_sign;
    }
    if (hidden_to == from) continue;
    out.append(text.substr(taken, from - taken)).append(kRedacted);
    taken = hidden_to;
  }
  return out.append(text.substr(taken));
}

// name=value pairs, also inside a word: "password=x", "?token=x&y=1", "Authorization: x".
std::string hide_assignments(std::string_view text) {
  std::string out;
  std::size_t name_from = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '=' || (c == ':' && i + 1 < text.size() && (text[i + 1] == ' ' || text[i + 1] == '"'))) {
      if (is_secret_name(text.substr(name_from, i - name_from))) {
        std::size_t value = i + 1;
        while (value < text.size() && (text[value] == ' ' || text[value] == '"' || text[value] == '\'')) ++value;
        const bool is_quoted = value > i + 1 && (text[value - 1] == '"' || text[value - 1] == '\'');
        const char closing = is_quoted ? text[value - 1] : '\0';
        std::size_t end = value;
        while (end < text.size() && text[end] != '&' && text[end] != ';' && text[end] != ',' &&
               (is_quoted ? text[end] != closing : text[end] != ' ')) {
          ++end;
        }
        out.append(text.substr(i, value - i));
        if (end > value) out += kRedacted;
        i = name_from = end;
        continue;
      }
    }
    if (!is_alnum(c) && c != '_' && c != '-' && c != '.' && c != '"' && c != '\'') name_from = i + 1;
    out.push_back(c);
    ++i;
  }
  return out;
}

std::string redact_word(std::string_view word) { return hide_shapes(hide_assignments(hide_url_credentials(word))); }

bool is_option(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

}  // namespace

std::vector<std::string> redact_words(std::span<const std::string> words) {
  std::vector<std::string> out;
  out.reserve(words.size());
  bool hides_next = false;
  for (const std::string& word : words) {
    // A value may begin with a dash; only what looks like another long option is none.
    if (hides_next && !word.starts_with("--")) {
      out.emplace_back(kRedacted);
      hides_next = false;
      continue;
    }
    hides_next = is_option(word) && word.find('=') == std::string::npos && is_secret_name(word);
    // A whole command line in one word: sh -c "train --api-key X".
    const bool is_line = word.find_first_of(" \t\n") != std::string::npos;
    out.push_back(is_line ? redact_text(word) : redact_word(word));
  }
  return out;
}

std::string redact_text(std::string_view text) {
  // Word by word, with the white space as it is.
  std::vector<std::string> words;
  std::vector<std::string_view> gaps;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t word = std::min(text.find_first_not_of(" \t\n", at), text.size());
    const std::size_t end = std::min(text.find_first_of(" \t\n", word), text.size());
    gaps.push_back(text.substr(at, word - at));
    words.emplace_back(text.substr(word, end - word));
    at = end;
  }
  std::string out;
  const std::vector<std::string> clean = redact_words(words);
  for (std::size_t i = 0; i < clean.size(); ++i) out.append(gaps[i]).append(clean[i]);
  // Once more as a whole: "Authorization: Bearer x" spans words.
  return hide_shapes(hide_assignments(out));
}

bool is_environment_recorded(std::string_view name) {
  static constexpr std::array<std::string_view, 27> kPrefixes{
      "OMP_",           "CUDA_",     "NCCL_",   "TORCH_",      "TORCHELASTIC_",
      "TORCHINDUCTOR_", "PYTORCH_",  "SLURM_",  "MKL_",        "OPENBLAS_",
      "KMP_",           "GOMP_",     "HIP_",    "ROCR_",       "RCCL_",
      "GLOO_",          "XLA_",      "NVIDIA_", "ACCELERATE_", "OMPI_COMM_WORLD_",
      "PMI_",           "PMIX_RANK", "UCX_",    "FI_",         "MALLOC_",
      "NUMEXPR_",       "HOTLAP_"};
  static constexpr std::array<std::string_view, 14> kNames{
      "RANK",           "LOCAL_RANK",   "WORLD_SIZE",  "LOCAL_WORLD_SIZE",      "GROUP_RANK",
      "NODE_RANK",      "MASTER_ADDR",  "MASTER_PORT", "CONDA_DEFAULT_ENV",     "VIRTUAL_ENV",
      "PYTHONHASHSEED", "PYTHONMALLOC", "LD_PRELOAD",  "TOKENIZERS_PARALLELISM"};
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
  if (is_secret_name(name)) return false;
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::map<std::string, std::string> recorded_environment(const char* const* environment) {
  std::map<std::string, std::string> kept;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::size_t sign = entry.find('=');
    if (sign == std::string_view::npos || !is_environment_recorded(entry.substr(0, sign))) continue;
    const std::string_view value = entry.substr(sign + 1).substr(0, kValueBytesMax);
    kept.emplace(entry.substr(0, sign), to_valid_utf8(redact_word(value)));
  }
  return kept;
}

}  // namespace hotlap
