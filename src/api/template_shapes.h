// How templates look in answers, and how their archives come.
#pragma once

#include <boost/json/object.hpp>

#include "api/context.h"
#include "api/service.h"
#include "image/template.h"

namespace atl::api {

const std::string& templates_dir(const Service& service);
boost::json::object template_json(const Service& service, const image::Template& item);
// The same of one that has just been made, with what that took.
Result<std::string> result_json(const Service& service, const ImportedTemplate& made);

// The body of a request, for an import.
Task<Result<std::shared_ptr<TemplateUpload>>> receive_archive(Context& context,
                                                              http::Request& request);

}  // namespace atl::api
