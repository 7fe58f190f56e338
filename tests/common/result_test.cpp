#include "common/result.h"

#include <doctest/doctest.h>

#include <memory>

using sphase::Done;
using sphase::errno_error;
using sphase::Error;
using sphase::Result;
using sphase::Status;

TEST_CASE("a result holds its value") {
  const Result<int> result(7);
  REQUIRE(result);
  CHECK(*result == 7);
}

TEST_CASE("a result without a value holds the reason") {
  const Result<int> result(Error{"no such counter"});
  CHECK_FALSE(result);
  CHECK(result.error() == "no such counter");
}

TEST_CASE("a result may hold a value that can only be moved") {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(3));
  REQUIRE(result);
  const std::unique_ptr<int> taken = std::move(*result);
  CHECK(*taken == 3);
}

TEST_CASE("a string is a value and never taken for an error") {
  const Result<std::string> result(std::string("text"));
  REQUIRE(result);
  CHECK(result->size() == 4);
}

TEST_CASE("a status is fine or says why not") {
  CHECK(Status(Done{}));
  CHECK_FALSE(Status(Error{"disk full"}));
}

TEST_CASE("an errno becomes a sentence that names what was tried") {
  errno = EACCES;
  CHECK(errno_error("cannot open /x").text == "cannot open /x: Permission denied");
  CHECK(errno_error("cannot open /x", ENOENT).text == "cannot open /x: No such file or directory");
}
