"""Private slates at the curator: routes and their epsilons, the plan of a request, and the draw."""
