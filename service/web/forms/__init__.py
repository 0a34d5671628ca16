"""Forms for every field of a resource, made from the model of its body.

How to add the forms of a resource, in a module of `service/web/resources`:
1. Declare a `Form` per kind: its `model` (the body of the API's operation), its `create` and
   `replace` operations, and `sections` with paths of fields in the order of the page. What no
   section names stands under More. `fixed` holds what the kind decides (`type`).
2. Declare a `Resource`: its path, noun, `read` and `delete` operations, where one lands `after`
   saving, what is lost when it is deleted, and `options` for fields that name other resources
   (`choices.py` has those of locations, channels, groups, services …), by patterns of paths.
3. Give `resource_routes(pages, RESOURCE)` to the routes, beside the list page; put it before a
   page at `/X/{id}`. Templates, messages, roles, double submits and deletion come with it.
4. Better words for a field or a value go into `field_labels.py`; the rest comes from the API.
A form posted unchanged changes nothing: add the resource to `test_unchanged_forms.py`.
"""
