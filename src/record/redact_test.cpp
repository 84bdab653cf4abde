#include "record/redact.h"

#include <gtest/gtest.h>

namespace hotlap {
namespace {

using Words = std::vector<std::string>;

TEST(Redact, ValuesOfSecretOptions) {
  EXPECT_EQ(redact_words(Words{"train.py", "--token", "abc123", "--lr", "0.1"}),
            (Words{"train.py", "--token", "***", "--lr", "0.1"}));
  for (const char* word :
       {"--api-key=SECRET", "--api_key=SECRET", "--wandbApiKey=SECRET", "--db.password=SECRET", "password=SECRET",
        "WANDB_API_KEY=SECRET", "--aws-secret-access-key=SECRET", "--hf-token=SECRET", "--auth=SECRET",
        "dbpassword=SECRET", "PGPASSWORD=SECRET", "MYTOKEN=SECRET", "--db-pass=SECRET", "--pass=SECRET",
        "--client-secret='SECRET'", "++trainer.logger.api_key=SECRET"}) {
    const std::string out = redact_words(Words{word})[0];
    EXPECT_EQ(out.find("SECRET"), std::string::npos) << out;
    EXPECT_NE(out.find("***"), std::string::npos) << out;
  }
  for (const char* option : {"--password", "--passwd", "-token", "--access-token", "--secret", "--privateKey",
                             "--wandb-key", "--db_pass", "--storage-key"}) {
    EXPECT_EQ(redact_words(Words{option, "SECRET"})[1], "***") << option;
  }
}

TEST(Redact, SecretsInsideACommandLineInOneWord) {
  const std::string line =
      redact_words(Words{"sh", "-c", "cd /x && train  --api-key SECRET --lr 1;\n TOKEN=SECRET run"})[2];
  EXPECT_EQ(line, "cd /x && train  --api-key *** --lr 1;\n TOKEN=*** run");
  EXPECT_EQ(redact_words(Words{"--token", "-SECRET", "--lr"}), (Words{"--token", "***", "--lr"}));
}

// The job waits meanwhile. What takes a time quadratic in the length of a word does not come back from these before
// the test's time limit.
TEST(Redact, LongWordsAreReadOnce) {
  constexpr std::size_t kBytes = std::size_t{1} << 20U;
  for (const std::string_view piece : {"QUJD", "u:p://", "sk-", "a="}) {
    std::string word("--config-b64=");
    while (word.size() < kBytes) word += piece;
    EXPECT_FALSE(redact_words(Words{word})[0].empty()) << piece;
  }
}

TEST(Redact, EveryUrlOfAWord) {
  EXPECT_EQ(redact_words(Words{"--urls=s3://a:b@x/y,http://h:80/z,ftp://c:d@e"})[0],
            "--urls=s3://***@x/y,http://h:80/z,ftp://***@e");
  EXPECT_EQ(redact_words(Words{"http://u:p/w@h/x"})[0], "http://***@h/x");
  EXPECT_EQ(redact_words(Words{"http://h/x http://u:p/w@h2/x@y"})[0], "http://h/x http://***@y");
}

TEST(Redact, TheWordsOfTrainingStay) {
  const Words harmless{"python",
                       "-m",
                       "train",
                       "--max-tokens",
                       "4096",
                       "--tokenizer",
                       "gpt2",
                       "--num-token-types=2",
                       "--key-dim",
                       "64",
                       "--author",
                       "somebody",
                       "--path=/data/patches",
                       "--monkey=1",
                       "a=b",
                       "--image-key=jpg",
                       "--two-pass=1",
                       "--padtoken=0",
                       "--token-length",
                       "77",
                       "s3://bucket/path",
                       "--keys",
                       "a,b",
                       "http://host:8080/x@y"};
  EXPECT_EQ(redact_words(harmless), harmless);
}

TEST(Redact, CredentialsOfUrls) {
  EXPECT_EQ(redact_words(Words{"https://user:pa55@host/repo.git"})[0], "https://***@host/repo.git");
  EXPECT_EQ(redact_words(Words{"--url=postgresql://u:p@db:5432/x"})[0], "--url=postgresql://***@db:5432/x");
  EXPECT_EQ(redact_words(Words{"https://u:p/w@host/x"})[0], "https://***@host/x");
  EXPECT_EQ(redact_words(Words{"https://host/x?token=abc&v=1"})[0], "https://host/x?token=***&v=1");
  EXPECT_EQ(redact_words(Words{"https://TOKEN1234@host/x"})[0], "https://***@host/x");
}

TEST(Redact, TokensByTheirShape) {
  for (const char* token :
       {"AKIAIOSFODNN7EXAMPLE", "hf_abcdefghijklmnopqrstuv", "ghp_0123456789abcdefghij0123456789abcdef",
        "glpat-abcdefghij0123456789", "sk-abcdefghijklmnop1234", "xoxb-1234567890-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc", "github_pat_11ABCDEFG0abcdefghijkl"}) {
    EXPECT_EQ(redact_words(Words{token})[0], "***") << token;
    EXPECT_EQ(redact_words(Words{"x=" + std::string(token)})[0], "x=***") << token;
  }
  EXPECT_EQ(redact_words(Words{"hf_model"})[0], "hf_model");
  EXPECT_EQ(redact_words(Words{"task-abcdefghijklmnop1234"})[0], "task-abcdefghijklmnop1234");
}

TEST(Redact, HeadersAndWholeLines) {
  EXPECT_EQ(redact_words(Words{"-H", "Authorization: Bearer abcdefgh12345"})[1].find("abcdefgh"), std::string::npos);
  EXPECT_EQ(redact_words(Words{"Bearer s3cret8"})[0], "Bearer ***");
  EXPECT_EQ(redact_words(Words{"a basic test"})[0], "a basic test");
  const std::string line = redact_text("curl -H Authorization: Bearer abcdefgh12345 --password x1 https://a:b@c/d");
  for (const char* secret : {"abcdefgh", "x1", "a:b"}) EXPECT_EQ(line.find(secret), std::string::npos) << line;
  EXPECT_EQ(redact_text("python train.py --lr 0.1"), "python train.py --lr 0.1");
}

TEST(Redact, EnvironmentByAllowListOnly) {
  const char* const environment[] = {
      "OMP_NUM_THREADS=4", "AWS_SECRET_ACCESS_KEY=x", "SLURM_JOB_ID=7", "SLURM_JWT=abc", "HOME=/home/me",
      "NCCL_DEBUG=INFO",   "TORCH_API_KEY=abc",       "RANK=0",         "WITHOUT",       nullptr};
  const std::map<std::string, std::string> expected{
      {"OMP_NUM_THREADS", "4"}, {"SLURM_JOB_ID", "7"}, {"NCCL_DEBUG", "INFO"}, {"RANK", "0"}};
  EXPECT_EQ(recorded_environment(environment), expected);
}

}  // namespace
}  // namespace hotlap
