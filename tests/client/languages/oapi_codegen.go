package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"example/clients"
	"example/operators"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func shown(number *int64) any {
	if number == nil {
		return "null"
	}
	return *number
}

func with(key string) func(context.Context, *http.Request) error {
	return func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+key)
		return nil
	}
}

func main() {
	ctx, origin := context.Background(), os.Getenv("ORIGIN")
	anyone := must(clients.NewClientWithResponses(origin + "/v1"))
	me := must(anyone.CreateAccountWithResponse(ctx, clients.AccountCreation{Name: "Élan"})).JSON201
	key := clients.WithRequestEditorFn(with(me.ApiKey))
	client := must(clients.NewClientWithResponses(origin+"/v1", key))
	creation := clients.PetCreation{Name: "Élan", CategoryId: 1 << 62}
	pet := must(client.CreatePetWithResponse(ctx, nil, creation)).JSON201
	sold := clients.Sold
	change := clients.PetPatch{Status: &sold}
	must(client.UpdatePetWithApplicationMergePatchPlusJSONBodyWithResponse(ctx, pet.Id, nil, change))
	for _, pet := range *must(client.ListPetsWithResponse(ctx, nil)).JSON200 {
		fmt.Println(pet.Name, pet.CategoryId, pet.Status)
	}
	creation.Name = "\u0085"
	refused := must(client.CreatePetWithResponse(ctx, nil, creation)).JSON400
	fmt.Println(refused.Code, *refused.Field)
	for _, specimen := range *must(client.ListSpecimensWithResponse(ctx, nil)).JSON200 {
		fmt.Println(specimen.TextPlain, shown(specimen.LongNullable))
	}

	token := operators.WithRequestEditorFn(with(os.Getenv("OPERATOR_TOKEN")))
	operator := must(operators.NewClientWithResponses(origin+"/operator/v1", token))
	must(operator.CreateAccountWithResponse(ctx, operators.AccountCreation{Name: "Élan"}))
	for _, account := range *must(operator.ListAccountsWithResponse(ctx, nil)).JSON200 {
		fmt.Println(account.Name, account.Plan)
	}
}
